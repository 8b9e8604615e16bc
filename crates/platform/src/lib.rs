//! Ways to catch the system calls of a program, behind one interface.
//!
//! A *platform* is a mechanism that stops a program at its system calls and lets a supervisor answer them. All
//! platforms run the same input, a [`Guest`]: a command, and a filter that decides each of its calls as seccomp would.
//! `allow` lets the kernel execute the call, errors and kills are applied as such, and `notify` passes the call to the
//! [`Supervisor`]. The calls that the filter allows are the same on every platform, so a guest can't gain calls by
//! evading the mechanism that catches them.
//!
//! | module | mechanism |
//! |---|---|
//! | `platform` | [`Platform`], its guest and its options |
//! | `supervisor` | [`Supervisor`] and its [`Answer`]s |
//! | `task` | [`Task`] and [`Space`]: the registers and memory behind a call |
//! | `caps` | [`Caps`]: the capabilities of a platform |
//! | `attached` | the platforms whose guests the kernel stops |
//! | `patched` | patched call sites, which these platforms use |
//! | `installing` | calls that install filters |
//! | `remote` | memory of another process |
//! | `stub` | the platform whose guests pass calls from a signal handler through shared memory |
//! | `kvm` | the platform whose guests run in a virtual machine |
//! | `in_process` | the platform whose guests catch their own calls |
//! | `probe` | whether a platform works here |
//! | `spin` | [`Spin`]: how long a side that waits for the other spins before it sleeps |
//!
//! ```no_run
//! use tamis_abi::{ActionKind, SeccompData};
//! use tamis_bpf::{Op, Program, Test};
//! use tamis_platform::{Answer, Guest, Options, Supervisor, Task};
//!
//! /// Tells programs that they run on another machine.
//! struct Uname;
//!
//! impl Supervisor for Uname {
//!     fn call(&self, task: &mut dyn Task, call: &SeccompData) -> Answer {
//!         match task.space().write(call.args[0], b"Tamis\0") {
//!             Ok(_) => Answer::Return(0),
//!             Err(errno) => Answer::Errno(errno.0 as u16),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ops = [
//!     Op::LoadData(0),
//!     Op::branch(Test::Eq, 63, 0, 1), // uname on x86-64
//!     Op::RetImm(ActionKind::Notify.ret()),
//!     Op::RetImm(ActionKind::Allow.ret()),
//! ];
//! let filter = Program::new(ops.map(Into::into).to_vec(), tamis_kernel::NATIVE_ENDIAN)?;
//! let guest = Guest { program: "uname".into(), args: vec![], filter: &filter, has_results: false };
//! let platform = tamis_platform::by_name("notify").ok_or("it is in the list")?;
//! println!("{:?}", platform.run(&guest, &Uname, &Options::default())?);
//! # Ok(()) }
//! ```
//!
//! The product has `notify`, `ptrace-seccomp` and `patched`. The others are the laboratory's; they are here with the
//! feature `lab`, because they share the tracer and the patched call sites.
//!
//! Not included are the decisions: the filter and the answers.
#![deny(unsafe_code)]
#![cfg_attr(
    not(all(target_arch = "x86_64", feature = "lab")),
    expect(
        dead_code,
        unused_imports,
        reason = "the laboratory's platforms use these parts of the product's"
    )
)]

mod attached;
mod caps;
mod error;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
mod in_process;
mod installing;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
mod kvm;
mod offsets;
mod patched;
mod platform;
mod probe;
mod remote;
mod rewrite;
mod spin;
#[cfg(all(target_arch = "x86_64", feature = "lab"))]
mod stub;
mod supervisor;
mod sys;
mod task;

pub use caps::{Caps, Family, Isolation};
pub use error::{PlatformError, Unavailable, Unsupported};
pub use patched::Tally;
pub use platform::{Guest, Options, Placement, Platform};
pub use spin::Spin;
pub use supervisor::{Answer, Supervisor};
pub use task::{Registers, Space, Task, TaskId};

/// All platforms: the fastest that runs every program first, those with limits of their own last. Platforms whose
/// guests catch their own calls exist for x86-64 only.
pub fn all() -> &'static [&'static dyn Platform] {
    static ALL: &[&dyn Platform] = &[
        &attached::NOTIFY,
        &attached::TRACE,
        #[cfg(feature = "lab")]
        &attached::EMULATE,
        #[cfg(feature = "lab")]
        &attached::SYSCALL,
        &attached::PATCHED,
        #[cfg(all(target_arch = "x86_64", feature = "lab"))]
        &stub::STUB,
        #[cfg(all(target_arch = "x86_64", feature = "lab"))]
        &kvm::KVM,
        #[cfg(all(target_arch = "x86_64", feature = "lab"))]
        &in_process::TRAP,
        #[cfg(all(target_arch = "x86_64", feature = "lab"))]
        &in_process::DISPATCH,
    ];
    ALL
}

/// Those of the platforms that run every program and confine it, in the order of preference for this machine's kernel.
///
/// The fastest, `notify`, is the first only where no signal ends a received call (`WAIT_KILLABLE_RECV`, 5.19): on older
/// kernels such a call is received again, and counted twice.
pub fn preferred(platforms: &[&'static dyn Platform]) -> Vec<&'static dyn Platform> {
    let mut platforms = platforms.to_vec();
    platforms.retain(|platform| {
        let caps = platform.caps();
        let runs_all = caps.has_threads && caps.has_forks && caps.has_exec && caps.runs_dynamic;
        runs_all && caps.isolation != Isolation::None
    });
    order(&mut platforms, attached::keeps_received_calls());
    platforms
}

/// Puts exact platforms before `notify` if that isn't exact.
fn order(platforms: &mut [&'static dyn Platform], is_notify_exact: bool) {
    let rank = |platform: &&dyn Platform| match platform.name() {
        _ if is_notify_exact => 0,
        "patched" => 0,
        "ptrace-seccomp" => 1,
        _ => 2,
    };
    platforms.sort_by_key(rank);
}

/// The platforms of the product, the fastest that runs every program first; the others are the laboratory's.
pub fn supported() -> &'static [&'static dyn Platform] {
    static SUPPORTED: &[&dyn Platform] = &[&attached::NOTIFY, &attached::TRACE, &attached::PATCHED];
    SUPPORTED
}

/// Tracing that changes nothing of the guest, for supervisors that forward every call and observe it. It isn't one of
/// [`all`]: it confines nothing.
///
/// The filter has to allow the calls that the supervisor must not see. Privileges of set-user-ID programs and listeners
/// of the guest's own are left in place, so a filter of the guest may hide calls: the strictest action counts. If a
/// filter of the guest returns `trace`, the calls fail with `ENOSYS`, as without a tracer. Running it ends when all
/// tasks have ended; if this process is killed, they are killed, too. Tasks that are created with `CLONE_UNTRACED`
/// aren't seen, and the calls that the filter selects fail for them with `ENOSYS`.
pub fn watching() -> &'static dyn Platform {
    &attached::WATCH
}

/// The platform with this name.
///
/// ```
/// assert!(tamis_platform::by_name("notify").is_some());
/// assert!(tamis_platform::by_name("telepathy").is_none());
/// ```
pub fn by_name(name: &str) -> Option<&'static dyn Platform> {
    let mut platforms = all().iter().copied();
    platforms.find(|platform| platform.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_is_the_first_only_where_it_is_exact() {
        let names = |is_exact| {
            let mut platforms = all().to_vec();
            order(&mut platforms, is_exact);
            platforms.iter().map(|one| one.name()).collect::<Vec<_>>()
        };
        assert_eq!(names(true)[0], "notify");
        assert_eq!(names(false)[..3], ["patched", "ptrace-seccomp", "notify"]);
    }
}
