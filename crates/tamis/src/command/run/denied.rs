//! `tamis run --explain-denied`: the calls that a filter denies with an error.
//!
//! The filters are merged into one, proved equivalent, in which actions with an error are replaced by `notify`. The
//! supervisor records these calls and returns the error. The kernel decides all other calls at full speed.
//!
//! The kernel permits one listener per task, so a program that installs its own fails with EBUSY.

use tamis_abi::signature;
use tamis_abi::{Action, ActionKind, Arch, Nr, SeccompData, call, errno, syscall};
use tamis_bpf::Stack;
use tamis_deploy::denied::Denials;
use tamis_kernel::listener::{Listener, Notification, Reply};
use tamis_kernel::memory;
use tamis_kernel::run::{self, Command, RunError, RunResult};
use tamis_profile::interest;
use tamis_recorder::view::{Argument, DecodedValue, Decoder};
use tamis_report::denied::essence;
use tamis_session::Policy;

use super::lines::DenialLines;
use crate::cli::load::native_arch;

/// The most bytes that are shown of texts other than paths.
const MAX_TEXT_BYTES: usize = 32;
/// The most bytes that are shown of a path: longer ones occur in attacks and tests.
const MAX_PATH_BYTES: usize = 256;

/// Runs a command under such filters; also returns the calls that got an error.
pub(super) fn run(
    command: &Command,
    stack: &Stack,
    policies: &[Option<Policy>],
    lines: Option<&DenialLines>,
) -> Result<(RunResult, Denials), RunError> {
    let mut denials = Denials::default();
    let mut decoder = decoder();
    let result = run::supervise(command, |listener, notification| {
        let run = stack.run(&notification.call);
        let action = Action::from_ret(run.ret);
        if action.kind == ActionKind::Errno {
            let policy = run
                .decided_by
                .and_then(|filter| policies.get(filter)?.as_ref());
            let mut show = || shown_waiting(&mut decoder, listener, notification);
            match lines {
                Some(lines) => lines.denied(notification, action, policy, show()),
                None => denials.add(&notification.call, action, policy, show),
            }
            Reply::Errno(action.data.min(errno::MAX))
        } else {
            // The policy's own `notify` without a supervisor.
            Reply::Errno(errno::enosys(native_arch()))
        }
    })?;
    Ok((result, denials))
}

/// A decoder without the data that programs read and write: reports are kept and sent, and data may be secret.
fn decoder() -> Decoder {
    Decoder::without_data(MAX_TEXT_BYTES, MAX_PATH_BYTES)
}

/// A pending call with the memory of its arguments; `None` if it can't be read.
fn shown_waiting(
    decoder: &mut Decoder,
    listener: &Listener,
    notification: &Notification,
) -> Option<String> {
    let read = |address: u64, buffer: &mut [u8]| {
        memory::read(notification.thread, address, buffer).unwrap_or(0)
    };
    let text = shown(decoder, &notification.call, &read)?;
    // If the caller has ended, the memory may have belonged to another process.
    let is_waiting = listener.is_waiting(notification.id).unwrap_or(false);
    is_waiting.then_some(text)
}

/// The call as text, which parses to a call of the same [`essence`]: with paths, names and structures, without other
/// addresses, descriptors and lengths.
fn shown(
    decoder: &mut Decoder,
    data: &SeccompData,
    read: &dyn Fn(u64, &mut [u8]) -> usize,
) -> Option<String> {
    let arch = Arch::of_call(data.arch, data.nr)?;
    let name = syscall::name(arch, Nr(data.nr))?;
    let args = decoder.entered(data, read);
    let args = args.iter().filter(|arg| is_telling(arch, name, arg));
    let args = args.map(|arg| format!("{}={}", arg.name, arg.shown.text()));
    let text = format!("{arch} {name}({})", args.collect::<Vec<_>>().join(", "));
    // Calls through a multiplexer have the arguments of others, and some values have names that only strace defines.
    let is_read = call::parse(&text, arch).is_ok_and(|read| essence(&read) == essence(data));
    is_read.then_some(text)
}

/// Whether an argument shows the purpose of the call.
fn is_telling(arch: Arch, call: &str, arg: &Argument) -> bool {
    match arg.shown {
        DecodedValue::Symbol(_)
        | DecodedValue::Mode(_)
        | DecodedValue::Bytes { .. }
        | DecodedValue::Strings { .. }
        | DecodedValue::Address(_)
        | DecodedValue::Structure(_) => true,
        DecodedValue::Signed(_)
        | DecodedValue::Unsigned(_)
        | DecodedValue::Bits(_)
        | DecodedValue::Pointer(_) => {
            let place = signature::index(arch, call, arg.name);
            let mut chosen = interest::arguments(arch, call).into_iter();
            arg.raw != 0 && chosen.any(|chosen| Some(chosen.index) == place)
        }
        DecodedValue::Environment(..) | DecodedValue::Later | DecodedValue::LaterLen(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The call with this text at the address 0x1000.
    fn shown_with(call: &str, memory: &[u8]) -> Option<String> {
        let data = call::parse(call, Arch::X86_64).expect("a call");
        let read = |address: u64, buffer: &mut [u8]| {
            let known = address
                .checked_sub(0x1000)
                .and_then(|at| memory.get(at as usize..));
            let known = known.unwrap_or_default();
            let len = known.len().min(buffer.len());
            buffer[..len].copy_from_slice(&known[..len]);
            len
        };
        shown(&mut decoder(), &data, &read)
    }

    #[test]
    fn paths_and_modes_are_shown_and_descriptors_are_not() {
        assert_eq!(
            shown_with("mkdirat(7, 0x1000, 0o755)", b"/srv/a\0").as_deref(),
            Some("x86_64 mkdirat(pathname=\"/srv/a\", mode=0755)")
        );
        assert_eq!(
            shown_with(
                "openat(AT_FDCWD, 0x1000, O_WRONLY|O_CREAT, 0o600)",
                b"b\"c\0"
            )
            .as_deref(),
            Some(
                r#"x86_64 openat(dfd=AT_FDCWD, filename="b\"c", flags=O_WRONLY|O_CREAT, mode=0600)"#
            )
        );
        assert_eq!(
            shown_with("chmod(0x5000, 0o4755)", b"").as_deref(),
            Some("x86_64 chmod(mode=04755)")
        );
        assert_eq!(
            shown_with("socket(AF_VSOCK, SOCK_STREAM, 9)", b"").as_deref(),
            Some("x86_64 socket(family=AF_VSOCK, type=SOCK_STREAM, protocol=9)")
        );
        assert_eq!(shown_with("nr 5000", b""), None);
    }

    #[test]
    fn data_is_not_shown() {
        let mut memory = vec![0; 0x40];
        let vector = [0x1100_u64, 6].map(u64::to_le_bytes).concat();
        memory[..16].copy_from_slice(&vector);
        // A message with one vector, at 0x1040.
        let message = [0, 0, 0x1000, 1, 0, 0, 0_u64].map(u64::to_le_bytes);
        memory.extend(message.concat());
        // The arguments of a program, at 0x1080.
        memory.resize(0x80, 0);
        memory.extend([0x1100_u64, 0].map(u64::to_le_bytes).concat());
        memory.resize(0x100, 0);
        memory.extend(b"secret\0");
        for call in [
            "write(1, 0x1100, 6)",
            "pwrite64(1, 0x1100, 6, 0)",
            "sendto(3, 0x1100, 6, 0, 0, 0)",
            "mq_timedsend(3, 0x1100, 6, 0, 0)",
            "add_key(0, 0, 0x1100, 6, 1)",
            "request_key(0, 0, 0x1100, 1)",
            "writev(1, 0x1000, 1)",
            "pwritev2(1, 0x1000, 1, 0, 0, 0)",
            "vmsplice(1, 0x1000, 1, 0)",
            "sendmsg(3, 0x1040, 0)",
            "execve(0, 0x1080, 0x1080)",
            "init_module(0x1100, 6, 0x1100)",
            "finit_module(3, 0x1100, 0)",
            "setxattr(0, 0, 0x1100, 6, 0)",
            "mount(0, 0, 0, 0, 0x1100)",
        ] {
            let text = shown_with(call, &memory).unwrap_or_else(|| panic!("{call}"));
            assert!(!text.contains("secret"), "{text}");
            assert!(!text.contains("0x1"), "an address: {text}");
        }
        // Names are not data.
        let name = shown_with("sethostname(0x1100, 6)", &memory);
        assert_eq!(name.as_deref(), Some("x86_64 sethostname(name=\"secret\")"));
        assert_eq!(
            shown_with("writev(1, 0x1000, 1)", &memory).as_deref(),
            Some("x86_64 writev(vec=[{iov_len=6}])")
        );
    }

    #[test]
    fn long_paths_are_cut() {
        let mut memory = vec![0xff; 4095];
        memory.push(0);
        let text = shown_with("chmod(0x1000, 0o600)", &memory).expect("a path");
        assert!(text.len() < 1100, "{}", text.len());
        assert!(text.ends_with("\\377\"..., mode=0600)"), "{text}");
        let path = [b"/".repeat(256), b"\0".to_vec()].concat();
        let text = shown_with("chmod(0x1000, 0o600)", &path).expect("a path");
        assert!(!text.contains("..."), "{text}");
    }
}
