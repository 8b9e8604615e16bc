//! A virtual machine in an emulated processor: started, read line by line, and ended in any case.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::image::Image;
use super::kernel::Kernel;
use super::suite;
use crate::arch::Arch;

/// The time limit of all boots of one kernel together.
pub(super) const LIMIT: Duration = Duration::from_mins(120);
/// The same for the short runs.
pub(super) const SMOKE_LIMIT: Duration = Duration::from_mins(5);
/// The time after which a machine that has printed nothing is taken for stopped: longer than any run may last.
const SILENCE: Duration = Duration::from_secs(suite::LIMIT_S as u64 + 120);
/// The memory of a machine, most of which is its file system.
const MEMORY_MIB: &str = "3072";

/// The program that emulates an architecture, and the Debian package that has it.
const fn qemu(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// Fails if a program that emulates is missing.
///
/// # Errors
/// With the command that installs it.
pub(super) fn require_qemu(kernels: &[&Kernel]) -> Result<()> {
    for kernel in kernels {
        let (program, package) = qemu(kernel.arch);
        let status = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if status.is_err() {
            bail!("{program} is missing: apt-get install {package}");
        }
    }
    Ok(())
}

/// A machine that is killed when it is dropped.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Boots a kernel until all runs have ended, or the limit is reached, and returns the lines of the serial console,
/// which are also written to `log`.
///
/// If the machine stops within a run, it boots again and begins with the next one, so that the run alone is lost.
///
/// # Errors
/// If a machine can't be started.
pub(super) fn run(
    kernel: &Kernel,
    image: &Image,
    limit: Duration,
    log: &Path,
) -> Result<Vec<String>> {
    let mut log = File::create(log)?;
    let end = Instant::now() + limit;
    let (mut all, mut begun) = (Vec::new(), 0);
    loop {
        let lines = boot(kernel, image, begun, end, &mut log)?;
        let new = lines.iter().filter(|line| line.starts_with(BEGIN)).count();
        let is_done = lines.iter().any(|line| line == "@lab done");
        all.extend(lines);
        begun += new;
        if is_done || new == 0 || begun >= image.runs || Instant::now() >= end {
            return Ok(all);
        }
        writeln!(
            log,
            "the machine stopped in a run, and boots again for the next one"
        )?;
    }
}

/// The beginning of the line before a run.
pub(super) const BEGIN: &str = "@lab begin ";

/// Boots a machine, which leaves out the runs that have begun, and returns the lines of its console.
fn boot(
    kernel: &Kernel,
    image: &Image,
    begun: usize,
    end: Instant,
    log: &mut File,
) -> Result<Vec<String>> {
    let mut machine = start(kernel, image, begun)?;
    let output = machine.0.stdout.take().context("a pipe")?;
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line)
                .trim_end_matches('\r')
                .to_owned();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut all = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left.min(SILENCE)) {
            Ok(line) => {
                writeln!(log, "{line}")?;
                if let Some(run) = line.strip_prefix(BEGIN) {
                    println!("  {run}");
                }
                all.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {
                writeln!(
                    log,
                    "the machine was ended, which printed nothing more or reached the limit"
                )?;
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(machine);
    reader.join().ok().context("the reader of the console")?;
    Ok(all)
}

fn start(kernel: &Kernel, image: &Image, begun: usize) -> Result<Machine> {
    let (program, _) = qemu(kernel.arch);
    let (console, words): (_, &[&str]) = match kernel.arch {
        Arch::X86_64 => ("ttyS0", &["-machine", "q35", "-cpu", "max"]),
        // Not `max`: it has pointer authentication, whose emulation would take most of the time.
        Arch::Aarch64 => ("ttyAMA0", &["-machine", "virt", "-cpu", "neoverse-n1"]),
    };
    // The machine is killed when this process ends, for whatever reason. Its processors take turns in one thread: beside
    // each other they execute stale code when the kernel patches itself, as for tracepoints, and crash or stop.
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", program])
        .args(words)
        .args([
            "-accel",
            "tcg,thread=single",
            "-smp",
            "2",
            "-m",
            MEMORY_MIB,
            "-nographic",
            "-nodefaults",
            "-no-reboot",
        ])
        .args(["-serial", "stdio", "-nic", "none", "-kernel"])
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(&image.initial)
        .args([
            "-append",
            &format!("console={console} rdinit=/init panic=-1 quiet tamis.begun={begun}"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    Ok(Machine(child.with_context(|| program.to_owned())?))
}
