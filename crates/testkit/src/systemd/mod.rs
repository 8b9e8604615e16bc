//! The machine's systemd as an oracle: boots it in namespaces of its own, starts units there, and reads the filters
//! that it installs for them.
//!
//! `unshare` makes mount, process, control group, network, IPC and UTS namespaces; `boot.sh` builds a file system in
//! memory and becomes systemd, which starts a target that wants all units. Everything is traced from its first
//! instruction. When the program of a unit is executed, all filters are installed and have not answered a call of
//! the program yet: they are read there, so it doesn't matter what they deny. A unit whose process ends before
//! that failed, and one without a process was not loaded. The last unit is ordered after all others; with it the test
//! is over.
//!
//! The control group of the test holds every process. Dropping it kills them, on a panic too, and the kernel does if
//! the test is killed, since that ends its tracer; the namespaces and what is mounted in them go with the last
//! process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tamis_bpf::Program;
use tamis_kernel::dump;
use tamis_kernel::tracee::{self, Event, Resume, Stop, Stopped, TraceOptions, Tracee};

use crate::scratch::Scratch;

mod cgroup;

use cgroup::Cgroup;

/// Where systemd may be.
const PLACES: [&str; 2] = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];
/// How long booting without units may take.
const TRIAL: Duration = Duration::from_secs(60);
/// Where units find the folder that they share with the test.
pub const SHARED: &str = "/opt";
/// The exit status of a service whose filters can't be installed.
pub const EXIT_SECCOMP: i32 = 228;
const BOOT: &str = include_str!("boot.sh");
const SYSTEM_CONF: &str = "\
[Manager]
DefaultLimitCORE=0
DefaultStandardOutput=null
DefaultStandardError=null
DefaultTasksAccounting=no
DefaultMemoryAccounting=no
DefaultTimeoutStartSec=60
";
/// The unit that is started after all others.
const LAST: &str = "tamis-last.service";

/// A service: the lines that follow `ExecStart=`, and its drop-ins in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// The lines after `ExecStart=` in `[Service]`.
    pub text: String,
    /// The texts of its drop-ins, in their order.
    pub drop_ins: Vec<String>,
}

/// systemd's result for a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// It started the program under these filters, the oldest first. If the program executes another one, those of the
    /// last.
    Filters(Vec<Program>),
    /// The process ended before it became the program: a filter couldn't be installed, or the filters denied a call
    /// that systemd made after the last of them.
    Failed {
        /// The status as of `wait`.
        status: i32,
        /// The filters at its end; `None` if one of them killed it, since the kernel doesn't show them then.
        filters: Option<Vec<Program>>,
    },
    /// There was no process.
    NotLoaded,
}

/// systemd's result for a unit, with its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The process of the unit.
    pub started: Started,
    /// The warnings and errors about its files, with the line: `/etc/…:7: Unknown section 'Foo'. Ignoring.`
    pub messages: Vec<String>,
}

/// systemd, as it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Systemd {
    program: PathBuf,
    /// The first line of `systemd --version`.
    pub version: String,
}

impl Unit {
    /// The file of the unit.
    pub fn file(&self) -> String {
        format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/true\n{}",
            self.text
        )
    }

    /// The unit and its drop-ins as `systemctl cat` prints them.
    pub fn cat(&self) -> String {
        let mut text = format!("# /etc/systemd/system/x.service\n{}", self.file());
        for (index, drop_in) in self.drop_ins.iter().enumerate() {
            let name = format!("\n# /etc/systemd/system/x.service.d/{index:02}.conf\n");
            text.extend([name.as_str(), drop_in]);
        }
        text
    }
}

impl Systemd {
    /// The machine's, if it can be booted here.
    ///
    /// # Errors
    /// The reason why it can't, as a sentence.
    pub fn find() -> Result<Systemd, String> {
        let (program, version) = (Systemd::program()?, Systemd::version()?);
        let systemd = Systemd { program, version };
        match systemd.start(&[], TRIAL) {
            Ok(Some(_)) => Ok(systemd),
            Ok(None) => Err(format!("systemd takes longer than {TRIAL:?} to boot here")),
            Err(error) => Err(format!("systemd can't be booted here: {error}")),
        }
    }

    fn program() -> Result<PathBuf, String> {
        let mut places = PLACES.map(Path::new).into_iter();
        let found = places.find(|place| place.exists());
        Ok(found.ok_or("systemd is not installed")?.to_owned())
    }

    /// The first line of the machine's `systemd --version`.
    ///
    /// # Errors
    /// The reason why there is none, as a sentence.
    pub fn version() -> Result<String, String> {
        let output = Command::new(Systemd::program()?).arg("--version").output();
        let output = output.map_err(|error| format!("systemd: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// Starts units, each in a service of its own, once no other boot of this process is under way. `None` if it took
    /// longer than the limit.
    ///
    /// # Errors
    /// If a file, a process or a control group can't be made, or systemd ends before it has started the last unit.
    ///
    /// # Panics
    /// If tracing fails.
    pub fn start(&self, units: &[Unit], limit: Duration) -> io::Result<Option<Vec<Loaded>>> {
        self.start_with(units, None, limit)
    }

    /// The same with a folder that the units find at [`SHARED`], and write to.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// If tracing fails.
    pub fn start_with(
        &self,
        units: &[Unit],
        shared: Option<&Path>,
        limit: Duration,
    ) -> io::Result<Option<Vec<Loaded>>> {
        static BOOTED: Mutex<()> = Mutex::new(());
        // It guards no data that a panic could leave half written.
        let _booted = BOOTED.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Scratch::new("systemd")?;
        write_units(folder.path(), units)?;
        if let Some(shared) = shared {
            symlink(shared, folder.path().join("shared"))?;
        }
        let cgroup = Cgroup::new()?;
        let (sender, receiver) = mpsc::channel();
        let is_over = AtomicBool::new(false);
        // Tracing belongs to a thread, and waits for all that it traces.
        let traced = thread::scope(|scope| {
            let tracer = scope.spawn(|| {
                let booted = self.boot(folder.path(), &cgroup, &is_over);
                // There is no receiver after the time limit.
                let _ = sender.send(());
                booted
            });
            let ended = receiver.recv_timeout(limit);
            is_over.store(true, Ordering::Relaxed);
            cgroup.kill();
            let started = tracer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match ended {
                Err(RecvTimeoutError::Timeout) => Ok(None),
                _ => started.map(Some),
            }
        })?;
        let Some(mut found) = traced else {
            return Ok(None);
        };
        if !found.contains_key(LAST) {
            return Err(io::Error::other("it ended before the last unit"));
        }
        let names = (0..units.len()).map(unit_name);
        let log = fs::read(folder.path().join("log"))?;
        let mut messages = messages(&String::from_utf8_lossy(&log));
        let loaded = names.map(|name| Loaded {
            started: found.remove(&name).unwrap_or(Started::NotLoaded),
            messages: messages.remove(&name).unwrap_or_default(),
        });
        Ok(Some(loaded.collect()))
    }

    /// Boots systemd, and traces until the last unit is started or it is over.
    fn boot(
        &self,
        folder: &Path,
        cgroup: &Cgroup,
        is_over: &AtomicBool,
    ) -> io::Result<BTreeMap<String, Started>> {
        // The shell waits for its tracer. It enters the control group before it makes it the root of a namespace.
        let script = "read -r go; echo 0 >\"$3/cgroup.procs\"; exec unshare --mount --pid --cgroup --ipc --uts --net \
                      --fork --kill-child=KILL /bin/sh \"$1/boot.sh\" \"$1\" \"$2\"";
        let mut child: Child = Command::new("/bin/sh")
            .args(["-c", script, "sh"])
            .args([folder, &self.program, cgroup.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let options = TraceOptions::EXIT_KILL
            | TraceOptions::FORK
            | TraceOptions::VFORK
            | TraceOptions::CLONE
            | TraceOptions::EXEC
            | TraceOptions::EXIT;
        let pid = i32::try_from(child.id()).expect("the kernel's type");
        let seized = Tracee::seize(pid, options).map_err(io::Error::other);
        if seized.is_err() {
            child.kill()?;
        }
        seized?;
        let mut stdin = child.stdin.take().expect("it is a pipe");
        stdin.write_all(b"\n")?;
        drop(stdin);
        let mut found = BTreeMap::new();
        // An error means that nothing is left to trace.
        while let Ok(tracee) = tracee::next() {
            let Ok(Event::Stopped(stopped)) = tracee.wait() else {
                continue;
            };
            if !found.contains_key(LAST) {
                record(&stopped, &mut found);
            }
            // Again at each stop: the first process may enter the group late.
            if found.contains_key(LAST) || is_over.load(Ordering::Relaxed) {
                cgroup.kill();
            }
            // Errors are those of tasks that were killed meanwhile.
            let _ = match stopped.stop() {
                Stop::Group(_) => stopped.listen(),
                _ => {
                    let signal = stopped.signal();
                    stopped.resume(Resume::Run, signal)
                }
            };
        }
        Ok(found)
    }
}

/// Records the result of a unit, if the stopped process belongs to one.
fn record(stopped: &Stopped, found: &mut BTreeMap<String, Started>) {
    let stop = stopped.stop();
    if !matches!(stop, Stop::Exec | Stop::Exit) {
        return;
    }
    let Some(unit) = unit_of(stopped.tracee().tid()) else {
        return;
    };
    // A service may have had helpers that ended before it became the program.
    let is_known = match found.get(&unit) {
        Some(_) => stop == Stop::Exit,
        None => false,
    };
    if is_known {
        return;
    }
    // Errors are those of tasks that were killed meanwhile.
    let started = match (stop, dump::filters(stopped).ok(), stopped.message()) {
        (Stop::Exec, Some(filters), _) => Started::Filters(filters),
        (Stop::Exit, filters, Ok(status)) => Started::Failed {
            status: status as i32,
            filters,
        },
        _ => return,
    };
    found.insert(unit, started);
}

/// The service to whose control group a process belongs.
fn unit_of(tid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let name = path.rsplit('/').next()?;
    (name.starts_with("tamis-") && name.ends_with(".service")).then(|| name.to_owned())
}

/// The messages of a log about the files of units, by unit.
fn messages(log: &str) -> BTreeMap<String, Vec<String>> {
    let mut messages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in log.lines() {
        let Some((_, message)) = line.split_once("]: ") else {
            continue;
        };
        let Some(file) = message.strip_prefix("/etc/systemd/system/") else {
            continue;
        };
        let end = file.find([':', '/']).unwrap_or(file.len());
        let name = file[..end].trim_end_matches(".d");
        let of_unit = messages.entry(name.to_owned()).or_default();
        of_unit.push(message.to_owned());
    }
    messages
}

fn unit_name(index: usize) -> String {
    format!("tamis-{index}.service")
}

fn write_units(folder: &Path, units: &[Unit]) -> io::Result<()> {
    let place = folder.join("units");
    fs::create_dir(&place)?;
    fs::create_dir(folder.join("root"))?;
    fs::write(folder.join("boot.sh"), BOOT)?;
    fs::write(folder.join("system.conf"), SYSTEM_CONF)?;
    let mut names = String::new();
    for (index, unit) in units.iter().enumerate() {
        let name = unit_name(index);
        fs::write(place.join(&name), unit.file())?;
        if !unit.drop_ins.is_empty() {
            let folder = place.join(format!("{name}.d"));
            fs::create_dir(&folder)?;
            for (index, drop_in) in unit.drop_ins.iter().enumerate() {
                fs::write(folder.join(format!("{index:02}.conf")), drop_in)?;
            }
        }
        names.extend([" ", name.as_str()]);
    }
    let last = format!(
        "[Unit]\nDefaultDependencies=no\nAfter={names}\n[Service]\nType=oneshot\nExecStart=/bin/true\n"
    );
    fs::write(place.join(LAST), last)?;
    let target = format!("[Unit]\nDefaultDependencies=no\nWants={LAST}{names}\n");
    fs::write(place.join("tamis.target"), target)
}
