//! The arguments of `ioctl` commands of terminals and descriptors.

use tamis_abi::{Arch, SeccompData, family};

use super::CallMemory;
use super::layout::{Fields, list};
use super::simple::ints;
use crate::view::symbols;

/// The maximum size: a terminal's settings without the control characters.
pub(super) const MAX_BYTES: usize = 16;

/// The form of the last argument's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One number.
    Int,
    WindowSize,
    Settings,
}

/// The commands, with the form of their memory and whether the kernel reads it.
const COMMANDS: [(&str, Form, bool); 14] = [
    ("FIOASYNC", Form::Int, true),
    ("FIONBIO", Form::Int, true),
    ("FIONREAD", Form::Int, false),
    ("TIOCINQ", Form::Int, false),
    ("TIOCGPGRP", Form::Int, false),
    ("TIOCGPTN", Form::Int, false),
    ("TIOCSPGRP", Form::Int, true),
    ("TIOCSPTLCK", Form::Int, true),
    ("TIOCGWINSZ", Form::WindowSize, false),
    ("TIOCSWINSZ", Form::WindowSize, true),
    ("TCGETS", Form::Settings, false),
    ("TCSETS", Form::Settings, true),
    ("TCSETSW", Form::Settings, true),
    ("TCSETSF", Form::Settings, true),
];

fn command(call: &SeccompData) -> Option<(Form, bool)> {
    let name = family::ioctl(Arch::X86_64, call.args[1] & 0xffff_ffff, 32)?;
    let (_, what, is_read) = COMMANDS.iter().find(|(known, ..)| *known == name)?;
    Some((*what, *is_read))
}

/// Whether the kernel reads the memory behind the last argument.
pub(super) fn is_read(call: &SeccompData) -> bool {
    command(call).is_some_and(|(_, is_read)| is_read)
}

pub(super) fn control(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    match command(behind.call)?.0 {
        Form::Int => ints(address, behind, 1),
        Form::WindowSize => window_size(address, behind),
        Form::Settings => settings(address, behind),
    }
}

fn window_size(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, 8)?;
    let fields = Fields(&bytes);
    let names = ["ws_row", "ws_col", "ws_xpixel", "ws_ypixel"]
        .into_iter()
        .enumerate();
    let members = names.map(|(index, name)| format!("{name}={}", fields.quarter(2 * index)));
    Some(format!("{{{}}}", list(members)))
}

const INPUT: [&str; 15] = [
    "IGNBRK", "BRKINT", "IGNPAR", "PARMRK", "INPCK", "ISTRIP", "INLCR", "IGNCR", "ICRNL", "IUCLC",
    "IXON", "IXANY", "IXOFF", "IMAXBEL", "IUTF8",
];

/// Output delays, by their bits; the first name is for 0.
const DELAYS: [(u32, &[&str]); 6] = [
    (0x100, &["NL0", "NL1"]),
    (0x600, &["CR0", "CR1", "CR2", "CR3"]),
    (0x1800, &["TAB0", "TAB1", "TAB2", "XTABS"]),
    (0x2000, &["BS0", "BS1"]),
    (0x4000, &["VT0", "VT1"]),
    (0x8000, &["FF0", "FF1"]),
];

const OUTPUT: [&str; 8] = [
    "OPOST", "OLCUC", "ONLCR", "OCRNL", "ONOCR", "ONLRET", "OFILL", "OFDEL",
];

/// The bits of the speed, and the shift of a separate input speed.
const SPEED: u32 = 0o010_017;
const INPUT_SPEED_SHIFT: u32 = 16;

/// Speeds in the order of their codes.
const SPEEDS: [&str; 32] = [
    "B0", "B50", "B75", "B110", "B134", "B150", "B200", "B300", "B600", "B1200", "B1800", "B2400",
    "B4800", "B9600", "B19200", "B38400", "BOTHER", "B57600", "B115200", "B230400", "B460800",
    "B500000", "B576000", "B921600", "B1000000", "B1152000", "B1500000", "B2000000", "B2500000",
    "B3000000", "B3500000", "B4000000",
];

/// The bits of the character size.
const SIZE: (u32, &[&str]) = (0o60, &["CS5", "CS6", "CS7", "CS8"]);

const CONTROL: [&str; 8] = [
    "CSTOPB", "CREAD", "PARENB", "PARODD", "HUPCL", "CLOCAL", "CMSPAR", "CRTSCTS",
];

const LOCAL: [&str; 16] = [
    "ISIG", "ICANON", "XCASE", "ECHO", "ECHOE", "ECHOK", "ECHONL", "NOFLSH", "IEXTEN", "ECHOCTL",
    "ECHOPRT", "ECHOKE", "FLUSHO", "PENDIN", "TOSTOP", "EXTPROC",
];

/// The name of a field's value.
fn chosen(value: u32, (mask, names): (u32, &[&'static str])) -> &'static str {
    names[((value & mask) >> mask.trailing_zeros()) as usize]
}

fn speed(bits: u32) -> &'static str {
    SPEEDS[(bits & 0xf | bits >> 8 & 0x10) as usize]
}

/// The names of fields, then of single bits, then the remaining bits; empty without bits or fields.
fn joined(fields: &[&str], names: &[&'static str], bits: u32) -> String {
    let rest = match bits {
        0 => String::new(),
        bits => symbols::joined(Arch::X86_64, names, bits.into()),
    };
    match fields.is_empty() {
        true => rest,
        false => format!("{}|{rest}", fields.join("|")),
    }
}

fn settings(address: u64, behind: &CallMemory<'_>) -> Option<String> {
    let bytes = behind.bytes(address, MAX_BYTES)?;
    let fields = Fields(&bytes);
    let [input, output, control, local] = [0, 4, 8, 12].map(|at| fields.half(at));
    let delays = DELAYS.map(|delay| chosen(output, delay));
    let delay_bits = DELAYS.iter().fold(0, |all, (mask, _)| all | mask);
    let input_speed = control >> INPUT_SPEED_SHIFT & SPEED;
    let other = format!("{}<<IBSHIFT", speed(input_speed));
    let mut sizes = vec![speed(control)];
    if input_speed != 0 {
        sizes.push(&other);
    }
    sizes.push(chosen(control, SIZE));
    let size_bits = SPEED | SPEED << INPUT_SPEED_SHIFT | SIZE.0;
    Some(format!(
        "{{c_iflag={}, c_oflag={}, c_cflag={}, c_lflag={}, ...}}",
        joined(&[], &INPUT, input),
        joined(&delays, &OUTPUT, output & !delay_bits),
        joined(&sizes, &CONTROL, control & !size_bits),
        joined(&[], &LOCAL, local)
    ))
}
