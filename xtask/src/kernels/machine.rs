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
use crate::arch::Arch;

/// The time limit of a machine.
const LIMIT: Duration = Duration::from_mins(60);
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

/// Boots a machine and returns the lines of its serial console, which are also written to `log`.
///
/// # Errors
/// If it can't be started. If it stops too early, or is stopped at the limit, the lines up to then are returned.
pub(super) fn boot(kernel: &Kernel, image: &Image, log: &Path) -> Result<Vec<String>> {
    let (program, _) = qemu(kernel.arch);
    let (console, words): (_, &[&str]) = match kernel.arch {
        Arch::X86_64 => ("ttyS0", &["-machine", "q35", "-cpu", "max"]),
        // Not `max`: it has pointer authentication, whose emulation would take most of the time.
        Arch::Aarch64 => ("ttyAMA0", &["-machine", "virt", "-cpu", "neoverse-n1"]),
    };
    // The machine is killed when this process ends, for whatever reason.
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", program])
        .args(words)
        .args([
            "-accel",
            "tcg,thread=multi",
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
            &format!("console={console} rdinit=/init panic=-1 quiet"),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut machine = Machine(child.with_context(|| program.to_owned())?);
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
    let mut log = File::create(log)?;
    let mut all = Vec::new();
    let end = Instant::now() + LIMIT;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                writeln!(log, "{line}")?;
                if line.starts_with("@lab begin") {
                    println!("  {}", line.trim_start_matches("@lab begin "));
                }
                all.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {
                writeln!(log, "the machine was ended after {} s", LIMIT.as_secs())?;
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(machine);
    reader.join().ok().context("the reader of the console")?;
    Ok(all)
}
