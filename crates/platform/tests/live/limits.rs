//! Guests and supervisors with scarce resources, and guests with large demands.

use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tamis_abi::SeccompData;
use tamis_kernel::Ended;
use tamis_platform::{
    Answer, Guest, Options, Placement, Platform, PlatformError, Supervisor, Task,
};
use tamis_testkit::seeds;

use crate::cases::{Outcome, run};
use crate::guests;
use crate::host::{self, Asked, Host};

/// With too few descriptors a platform returns an error, with enough it works; nothing leaks in either case.
pub(crate) fn few_descriptors(platform: &dyn Platform) -> Outcome {
    let before = limit(None);
    // Nothing works below the least limit; the monitor of a machine needs the most descriptors.
    let mut has_failed = false;
    for descriptors in (3..28).step_by(3).chain([64, 330]) {
        limit(Some(descriptors));
        let host = Host::default();
        let ended = run(
            platform,
            "loop",
            &[],
            Asked::Some,
            &host,
            &Options::default(),
        );
        limit(Some(before));
        match ended {
            Ok(ended) => assert_eq!(ended, Ended::Exited(0), "{descriptors} descriptors"),
            Err(error) => {
                assert!(descriptors < 330, "{error:?}");
                assert!(is_told(&error), "{descriptors} descriptors: {error:?}");
                has_failed = true;
            }
        }
    }
    assert!(has_failed || platform.caps().is_signal_safe);
    Outcome::Passed
}

/// A guest inherits the same descriptors as an executed program, while another thread opens and closes close-on-exec
/// descriptors.
pub(crate) fn inherited_descriptors(platform: &dyn Platform) -> Outcome {
    const OPENED: RangeInclusive<RawFd> = 300..=340;
    const TIMES: usize = 10;
    let null = File::open("/dev/null").expect("it can be opened");
    let inherited = null.try_clone().expect("a copy");
    // SAFETY: the descriptor stays open, and takes no flags.
    unsafe { libc::fcntl(inherited.as_raw_fd(), libc::F_SETFD, 0) };
    let numbers = [inherited.as_raw_fd(), *OPENED.start(), *OPENED.end()].map(|fd| fd.to_string());
    let args = numbers.each_ref().map(String::as_str);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for fd in OPENED {
                    // SAFETY: numbers only; nothing else has descriptors that high.
                    unsafe { libc::dup3(null.as_raw_fd(), fd, libc::O_CLOEXEC) };
                }
                for fd in OPENED {
                    // SAFETY: as above.
                    unsafe { libc::close(fd) };
                }
            }
        });
        for _ in 0..TIMES {
            let (host, options) = (Host::default(), Options::default());
            let ended = run(platform, "inherits", &args, Asked::Some, &host, &options);
            is_done.store(!matches!(ended, Ok(Ended::Exited(0))), Ordering::Relaxed);
            assert_eq!(ended.expect("it runs"), Ended::Exited(0));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    Outcome::Passed
}

fn is_told(error: &PlatformError) -> bool {
    let text = error.to_string();
    !text.is_empty() && !text.contains("no panic")
}

/// Sets the soft limit of descriptors, and returns it.
fn limit(new: Option<u64>) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is writable, and the new limit is below the hard limit.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        if let Some(new) = new {
            limit.rlim_cur = new.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
    limit.rlim_cur
}

/// A guest at its memory limit can still make calls.
pub(crate) fn little_memory(platform: &dyn Platform) -> Outcome {
    let host = Host::default();
    let options = Options::default();
    let ended = run(platform, "memory", &[], Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    if !platform.caps().is_signal_safe {
        assert_ne!(host.asked.load(Ordering::Relaxed), 0);
    }
    Outcome::Passed
}

/// Under a supervisor without CAP_SYS_PTRACE, a guest creates no untraced process, and nothing else fails.
pub(crate) fn heirs(platform: &dyn Platform) -> Outcome {
    const PTRACE: u32 = 1 << 19;
    let host = Host::default();
    drop_capability(PTRACE);
    let options = Options::default();
    let ended = run(platform, "heirs", &[], Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    assert_ne!(host.asked.load(Ordering::Relaxed), 0);
    Outcome::Passed
}

/// Drops a capability, given by its bit.
pub(crate) fn drop_capability(bit: u32) {
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    // Effective, permitted, inheritable; then the same for higher numbers.
    let mut sets = [0_u32; 6];
    // SAFETY: both have the sizes of this version, and the second is writable.
    unsafe {
        let read = libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
        assert_eq!(read, 0);
        for set in &mut sets[..3] {
            *set &= !bit;
        }
        let set = libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        assert_eq!(set, 0);
    }
}

/// 1000 threads and as many processes with `TAMIS_SEEDS=full`, else 50.
pub(crate) fn many_tasks(platform: &dyn Platform) -> Outcome {
    let tasks = if seeds::is_full() { "1000" } else { "50" };
    many(platform, &Host::default(), tasks, "1")
}

/// A million calls with `TAMIS_SEEDS=full`, else 5000: neither process has more descriptors and mappings at the last
/// call than at an early one.
pub(crate) fn many_calls(platform: &dyn Platform) -> Outcome {
    let calls = if seeds::is_full() { 1_000_000 } else { 5000 };
    let text = calls.to_string();
    if platform.caps().is_signal_safe {
        return many(platform, &Host::default(), "0", &text);
    }
    let counting = Counting {
        host: Host::default(),
        last: calls,
        asked: AtomicU64::new(0),
        seen: Mutex::default(),
    };
    many(platform, &counting, "0", &text);
    let seen = counting.seen.lock().expect("no panic");
    let [early, late] = [&seen[1], &seen[2]];
    println!("descriptors and mappings of both, then after {calls} calls: {early:?} {late:?}");
    let names = ["descriptors", "mappings"].repeat(2);
    for (name, (early, late)) in names.iter().zip(early.iter().zip(late)) {
        // The allocator may have added a mapping.
        assert!(*late <= early + 1, "{name}: {early} {late}");
    }
    Outcome::Passed
}

/// Counts the descriptors and mappings of its own process and of the guest's, during calls.
struct Counting {
    host: Host,
    /// The number of the guest's last call.
    last: u64,
    asked: AtomicU64,
    /// The counts; the first one isn't compared, since the counting itself allocates resources.
    seen: Mutex<Vec<[usize; 4]>>,
}

impl Supervisor for Counting {
    fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
        const EARLY: [u64; 2] = [100, 200];
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if EARLY.contains(&number) || number == self.last {
            let guest = task.id().0.to_string();
            let [own, guests] = ["self", &guest].map(descriptors_and_mappings);
            let all = [own[0], own[1], guests[0], guests[1]];
            self.seen.lock().expect("no panic").push(all);
        }
        self.host.call(task, call)
    }
}

fn descriptors_and_mappings(process: &str) -> [usize; 2] {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).expect("descriptors");
    let mappings = fs::read_to_string(format!("/proc/{process}/maps")).expect("mappings");
    [descriptors.count(), mappings.lines().count()]
}

fn many(platform: &dyn Platform, supervisor: &dyn Supervisor, tasks: &str, calls: &str) -> Outcome {
    let cpus = tamis_kernel::affinity::allowed().expect("the CPUs");
    let options = Options {
        placement: Placement::Same(cpus[0]),
        ..Options::default()
    };
    let filter = host::filter(Asked::Some);
    let guest = Guest {
        program: guests::path("many").into(),
        args: [tasks, calls].map(Into::into).to_vec(),
        filter: &filter,
        has_results: false,
    };
    let ended = platform.run(&guest, supervisor, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// The probe of a platform returns the same result each time.
pub(crate) fn probed(platform: &dyn Platform) -> Outcome {
    const TIMES: usize = 100;
    const FEW: usize = 10;
    let times = match seeds::is_full() {
        true => TIMES,
        false => FEW,
    };
    for time in 0..times {
        assert_eq!(platform.probe(), Ok(()), "time {time}");
    }
    Outcome::Passed
}
