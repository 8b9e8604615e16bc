//! A virtual machine in an emulated processor: started, read line by line, and ended in any case.

use std::fs::{self, File};
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

/// The time limit of all boots of one kernel together. As with all limits here the time doesn't count in which the
/// emulator waits for a processor, so that they are the same beside other work.
pub(super) const LIMIT: Duration = Duration::from_mins(120);
/// The same for the short runs.
pub(super) const SMOKE_LIMIT: Duration = Duration::from_mins(5);
/// The time after which a machine that has printed nothing is taken for stopped: longer than any run may last, of whose
/// seconds a usual processor emulates one in four.
const SILENCE: Duration = Duration::from_secs(suite::LIMIT_S as u64 * 6);
/// The time between two looks at the time.
const LOOK: Duration = Duration::from_secs(2);
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
struct Machine {
    process: Child,
    started: Instant,
    /// How long its emulated processors waited for a processor.
    waited: Duration,
}

impl Machine {
    /// How long it has run on a processor, or has had nothing to do.
    fn age(&mut self) -> Duration {
        // The thread is gone once the machine is off.
        self.waited = self.waited.max(self.waited_now().unwrap_or_default());
        self.started.elapsed().saturating_sub(self.waited)
    }

    /// How long that thread waited for a processor which waited longest: the thread of the emulated processors. `None`
    /// if this kernel doesn't count it.
    fn waited_now(&self) -> Option<Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).ok()?;
        let waited = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        });
        waited.max().map(Duration::from_nanos)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a kernel printed, and how long it took.
pub(super) struct Printed {
    /// The lines of the serial console.
    pub(super) lines: Vec<String>,
    /// The time without that in which the emulator waited for a processor.
    pub(super) time: Duration,
}

/// Boots a kernel until all runs have ended, or the limit is reached, and returns what it printed, which is also
/// written to `log`.
///
/// If the machine stops within a run, it boots again and begins with the next one, so that the run alone is lost.
///
/// # Errors
/// If a machine can't be started.
pub(super) fn run(kernel: &Kernel, image: &Image, limit: Duration, log: &Path) -> Result<Printed> {
    let mut log = File::create(log)?;
    let (mut all, mut begun) = (Vec::new(), 0);
    let mut time = Duration::ZERO;
    loop {
        let boot = boot(kernel, image, begun, limit.saturating_sub(time), &mut log)?;
        let begins = boot.lines.iter().filter(|line| line.starts_with(BEGIN));
        let new = begins.count();
        let is_done = boot.lines.iter().any(|line| line == "@lab done");
        all.extend(boot.lines);
        begun += new;
        time += boot.time;
        if is_done || new == 0 || begun >= image.runs || time >= limit {
            return Ok(Printed { lines: all, time });
        }
        writeln!(
            log,
            "the machine stopped in a run, and boots again for the next one"
        )?;
    }
}

/// The beginning of the line before a run.
pub(super) const BEGIN: &str = "@lab begin ";

/// Boots a machine, which leaves out the runs that have begun, and returns what it printed.
fn boot(
    kernel: &Kernel,
    image: &Image,
    begun: usize,
    limit: Duration,
    log: &mut File,
) -> Result<Printed> {
    let mut machine = start(kernel, image, begun)?;
    let output = machine.process.stdout.take().context("a pipe")?;
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
    let mut last_line = Duration::ZERO;
    loop {
        let received = lines.recv_timeout(LOOK);
        let age = machine.age();
        match received {
            Ok(line) => {
                writeln!(log, "{line}")?;
                if let Some(run) = line.strip_prefix(BEGIN) {
                    println!("  {run}");
                }
                all.push(line);
                last_line = age;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if age >= limit || age.saturating_sub(last_line) >= SILENCE {
            writeln!(
                log,
                "the machine was ended, which printed nothing more or reached the limit"
            )?;
            break;
        }
    }
    let time = machine.age();
    drop(machine);
    reader.join().ok().context("the reader of the console")?;
    Ok(Printed { lines: all, time })
}

fn start(kernel: &Kernel, image: &Image, begun: usize) -> Result<Machine> {
    let (program, _) = qemu(kernel.arch);
    let (console, words): (_, &[&str]) = match kernel.arch {
        Arch::X86_64 => ("ttyS0", &["-machine", "q35", "-cpu", "max"]),
        // Not `max`: it has pointer authentication, whose emulation would take most of the time.
        Arch::Aarch64 => ("ttyAMA0", &["-machine", "virt", "-cpu", "neoverse-n1"]),
    };
    // The machine is killed when this process ends, for whatever reason. Its processors take turns in one thread: beside
    // each other they execute stale code when the kernel patches itself, as for tracepoints, and crash or stop. Its clock
    // counts instructions, one a nanosecond, so that its limits don't depend on what else this machine does, and leaves
    // out the time in which it sleeps.
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", program])
        .args(words)
        .args([
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=0,sleep=off",
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
    Ok(Machine {
        process: child.with_context(|| program.to_owned())?,
        started: Instant::now(),
        waited: Duration::ZERO,
    })
}
