//! Whether a platform works here: it runs a small guest, whose last call must be caught.
//!
//! The guest is `true`; if that is missing, as in many container images, it is a program of two calls in memory.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tamis_abi::{Action, Arch, SeccompData, family};
use tamis_bpf::{Op, Program, Test};
use tamis_kernel::spawn::SpawnError;
use tamis_kernel::{Ended, NATIVE_ENDIAN, search};

use crate::error::{PlatformError, Unavailable};
use crate::platform::{Guest, Options, Platform};
use crate::supervisor::{Answer, Supervisor};
use crate::sys::machine;
use crate::task::Task;

/// The time limit for the guest, which makes some fifty calls.
const LIMIT: Duration = Duration::from_secs(10);

/// Runs a small guest whose last call is counted.
pub(crate) fn probe(platform: &dyn Platform) -> Result<(), Unavailable> {
    let counter = Counter::default();
    run(platform, &counter, 0)?;
    match counter.calls.load(Ordering::Relaxed) {
        0 => Err(not_caught()),
        _ => Ok(()),
    }
}

/// Runs a small guest whose last call goes to a supervisor and which then ends with this code.
pub(crate) fn run(
    platform: &dyn Platform,
    supervisor: &dyn Supervisor,
    code: u8,
) -> Result<(), Unavailable> {
    let unavailable = |reason: String, remedy| Unavailable { reason, remedy };
    let small = SmallGuest::new().map_err(|error| unavailable(error.to_string(), None))?;
    let filter = filter();
    let guest = Guest {
        program: small.program.clone(),
        args: Vec::new(),
        filter: &filter,
        has_results: false,
    };
    let (ended, is_late) = run_within(LIMIT, platform, &guest, supervisor);
    let reason = match ended {
        Err(error) => return Err(unavailable(error.to_string(), remedy(&error, platform))),
        Ok(Ended::Exited(found)) if found == code => return Ok(()),
        Ok(_) if is_late => format!("a small guest didn't end within {LIMIT:?}"),
        Ok(Ended::Exited(0)) => return Err(not_caught()),
        Ok(Ended::Exited(found)) => format!("a small guest failed with code {found}"),
        Ok(Ended::Signalled { signal, .. }) => {
            format!("a small guest was ended by {}", signal_name(signal))
        }
    };
    Err(unavailable(reason, None))
}

fn not_caught() -> Unavailable {
    Unavailable {
        reason: "a small guest ran, and its last call was not caught".to_owned(),
        remedy: None,
    }
}

/// The remedy for an error: none, unless a part of the platform is denied.
fn remedy(error: &PlatformError, platform: &dyn Platform) -> Option<&'static str> {
    let is_denied = match error {
        PlatformError::Request { errno, .. } => {
            [libc::EPERM, libc::EACCES, libc::ENOSYS].contains(&errno.0)
        }
        PlatformError::Spawn(SpawnError::Install { .. } | SpawnError::Killed) => true,
        _ => false,
    };
    let traces = platform.caps().sees_tasks;
    is_denied.then_some(match traces {
        true => "it takes seccomp filters and ptrace of own children, which a container may deny",
        false => "it takes seccomp filters, which a container may deny",
    })
}

fn signal_name(signal: i32) -> String {
    let family = family::for_argument("kill", "sig");
    let name = family.and_then(|family| family.name(Arch::X86_64, signal as u64, i32::BITS));
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// The filter that returns `notify` for a process's last call.
fn filter() -> Program {
    let ops = [
        Op::LoadData(0),
        Op::branch(Test::Eq, libc::SYS_exit_group as u32, 0, 1),
        Op::RetImm(tamis_abi::ActionKind::Notify.ret()),
        Op::RetImm(Action::ALLOW.ret()),
    ];
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("the program is valid")
}

/// A program that ends with code 0.
struct SmallGuest {
    program: OsString,
    /// The file of its path, if it isn't installed.
    _file: Option<OwnedFd>,
}

impl SmallGuest {
    fn new() -> Result<SmallGuest, PlatformError> {
        match search::find("true".as_ref()) {
            Ok(path) => Ok(SmallGuest {
                program: path.into(),
                _file: None,
            }),
            Err(_) => SmallGuest::in_memory(),
        }
    }

    fn in_memory() -> Result<SmallGuest, PlatformError> {
        let file = machine::memory_file(c"tamis-probe", &elf());
        let file = file.map_err(|errno| PlatformError::Request {
            request: "memfd_create",
            errno,
        })?;
        // Not `self`: the descriptor is closed when the guest executes the file.
        let program = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(SmallGuest {
            program: program.into(),
            _file: Some(file),
        })
    }
}

/// The machine's number in ELF, and `exit_group(0)`.
#[cfg(target_arch = "x86_64")]
const MACHINE: (u16, &[u8]) = (
    62,
    &[0x31, 0xff, 0xb8, 231, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b],
);
#[cfg(target_arch = "aarch64")]
const MACHINE: (u16, &[u8]) = (
    183,
    &[0, 0, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4],
);
/// On other architectures there is no such program, and executing it fails.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: (u16, &[u8]) = (0, &[]);

/// An ELF file of one segment, which has its headers and code.
fn elf() -> Vec<u8> {
    const ADDRESS: u64 = 0x40_0000;
    const HEADER_BYTES: u16 = 64;
    const SEGMENT_BYTES: u16 = 56;
    const HEADERS_BYTES: u64 = (HEADER_BYTES + SEGMENT_BYTES) as u64;
    const LITTLE: u8 = 1;
    const EXECUTABLE: u16 = 2;
    const LOAD: u32 = 1;
    const READ_AND_EXECUTE: u32 = 5;
    const PAGE: u64 = 4096;
    let (machine, code) = MACHINE;
    let len_bytes = HEADERS_BYTES + code.len() as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, LITTLE, 1, 0];
    file.extend([0; 8]);
    let mut put = |bytes: &[u8]| file.extend(bytes);
    put(&EXECUTABLE.to_le_bytes());
    put(&machine.to_le_bytes());
    put(&1_u32.to_le_bytes());
    for word in [ADDRESS + HEADERS_BYTES, HEADER_BYTES.into(), 0] {
        put(&word.to_le_bytes());
    }
    put(&0_u32.to_le_bytes());
    for half in [HEADER_BYTES, SEGMENT_BYTES, 1, 0, 0, 0] {
        put(&half.to_le_bytes());
    }
    put(&LOAD.to_le_bytes());
    put(&READ_AND_EXECUTE.to_le_bytes());
    for word in [0, ADDRESS, ADDRESS, len_bytes, len_bytes, PAGE] {
        put(&word.to_le_bytes());
    }
    put(code);
    file
}

/// Runs a guest, which is killed after the time limit; returns whether it was killed.
fn run_within(
    limit: Duration,
    platform: &dyn Platform,
    guest: &Guest<'_>,
    supervisor: &dyn Supervisor,
) -> (Result<Ended, PlatformError>, bool) {
    let is_late = AtomicBool::new(false);
    let ended = io::pipe()
        .map_err(|error| PlatformError::of_io("making a pipe", &error))
        .and_then(|(reader, mut writer)| {
            let (done, is_done) = mpsc::channel::<()>();
            thread::scope(|scope| {
                let is_late = &is_late;
                let watch = move || {
                    if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                        is_late.store(true, Ordering::Relaxed);
                        // If it fails, the guest has ended.
                        let _ = writer.write_all(&[1]);
                    }
                };
                let watching = thread::Builder::new().spawn_scoped(scope, watch);
                watching.map_err(|error| PlatformError::of_io("starting a thread", &error))?;
                let options = Options {
                    until: Some(reader.as_fd()),
                    ..Options::default()
                };
                let ended = platform.run(guest, supervisor, &options);
                drop(done);
                ended
            })
        });
    (ended, is_late.into_inner())
}

/// Forwards calls and counts them.
#[derive(Default)]
struct Counter {
    calls: AtomicU32,
}

impl Supervisor for Counter {
    fn call(&self, _task: &mut dyn Task, _call: &SeccompData) -> Answer {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Answer::Forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_kernel::Errno;

    #[test]
    fn only_what_is_denied_has_a_remedy() {
        let of = |error| remedy(&error, crate::all()[0]).is_some();
        let request = |errno| PlatformError::Request {
            request: "seccomp",
            errno: Errno(errno),
        };
        assert!(of(request(libc::EPERM)) && of(request(libc::ENOSYS)));
        assert!(!of(request(libc::EMFILE)));
        assert!(!of(PlatformError::Spawn(SpawnError::Exec(Errno::ENOENT))));
    }

    #[test]
    fn a_signal_that_ends_the_guest_is_named() {
        /// Ends its guest by a signal.
        struct Crashing;
        impl Platform for Crashing {
            fn name(&self) -> &'static str {
                "crashing"
            }
            fn caps(&self) -> crate::Caps {
                crate::all()[0].caps()
            }
            fn probe(&self) -> Result<(), Unavailable> {
                probe(self)
            }
            fn run(
                &self,
                _: &Guest<'_>,
                _: &dyn Supervisor,
                _: &Options<'_>,
            ) -> Result<Ended, PlatformError> {
                Ok(Ended::Signalled {
                    signal: libc::SIGSEGV,
                    core_dumped: false,
                })
            }
        }
        let reason = Crashing.probe().expect_err("it doesn't work").reason;
        assert_eq!(reason, "a small guest was ended by SIGSEGV");
    }

    #[test]
    fn the_program_in_memory_runs_on_every_platform_that_runs_others() {
        for platform in crate::all() {
            if platform.probe().is_err() {
                continue;
            }
            let filter = filter();
            let small = SmallGuest::in_memory().expect("a file in memory");
            let guest = Guest {
                program: small.program.clone(),
                args: Vec::new(),
                filter: &filter,
                has_results: false,
            };
            let (ended, _) = run_within(LIMIT, *platform, &guest, &Counter::default());
            let name = platform.name();
            assert_eq!(ended.expect(name), Ended::Exited(0), "{name}");
        }
    }
}
