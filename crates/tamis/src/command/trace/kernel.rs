//! Tracing by programs in the kernel: a command, or running processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tamis_bpf::Program;
use tamis_kernel::Ended;
use tamis_kernel::interrupt::Interrupts;
use tamis_kernel::spawn::Spawn;
use tamis_recorder::ebpf::{Start, Viewer};
use tamis_recorder::view::{CallTracker, Decoder, Sink};

use super::{Args, Output, unwritten};
use crate::cli::{Failure, Global, exit};
use crate::command::record::kernel::{choose, refused};

/// The interval of polling.
const PACE: Duration = Duration::from_millis(5);

/// Shows calls until all tasks end, or until an interrupt.
pub(super) fn run(
    args: &Args,
    filter: &Program,
    sink: Output,
    global: &Global,
) -> Result<u8, Failure> {
    let viewer = Viewer::new(filter).map_err(|error| {
        if error.is_bug() {
            return Failure::bug(error.to_string(), "please report this");
        }
        let help = "a command can be traced without privileges by `--backend ptrace`";
        Failure::new(exit::ENVIRONMENT, error.to_string(), Some(help.to_owned()))
    })?;
    for missing in viewer.missing() {
        global.notice(&format!("tamis: {missing}"));
    }
    let decoder = Decoder::new(args.string_bytes.min(Viewer::MAX_BYTES));
    let mut following = CallTracker::new(decoder, sink);
    let ended = match args.command.split_first() {
        Some((program, arguments)) => {
            let mut spawn = Spawn::new(program);
            spawn.args = arguments.to_vec();
            spawn.no_new_privs = false;
            spawn.forward_signals = true;
            let held = spawn.start().map_err(|error| refused(program, &error))?;
            viewer.record(held.pid(), Start::AtExec);
            following.created(held.pid());
            let mut child = held.release();
            let is_over = AtomicBool::new(false);
            let ended = thread::scope(|scope| {
                scope.spawn(|| {
                    let is_over = || is_over.load(Ordering::Acquire);
                    tell_until(viewer, &mut following, is_over);
                });
                let ended = child.wait();
                let error = child.error();
                drop(child);
                is_over.store(true, Ordering::Release);
                (ended, error)
            });
            if let (_, Some(error)) = &ended {
                return Err(refused(program, error));
            }
            Some(ended.0.map_err(|errno| {
                Failure::environment(format!("the command can't be waited for: {errno}"))
            })?)
        }
        None => {
            choose(&args.pid, |task| {
                viewer.record(task, Start::Now);
                following.created(task);
            })?;
            tell_until(viewer, &mut following, || true);
            None
        }
    };
    following
        .sink()
        .finish()
        .map_err(|error| unwritten(&error))?;
    Ok(ended.map_or(exit::OK, Ended::pass_on))
}

/// Shows events until the function returns true, and then until all tasks end or an interrupt arrives.
fn tell_until(mut viewer: Viewer, following: &mut CallTracker<Output>, is_over: impl Fn() -> bool) {
    let mut interrupts = None;
    let mut ticked = Instant::now();
    loop {
        let mut has_ended = false;
        // The command receives the signals while it lives.
        if is_over() {
            let interrupts = interrupts.get_or_insert_with(Interrupts::catch);
            has_ended = interrupts.arrived() || viewer.live() == 0;
        }
        viewer.tell(following);
        if has_ended {
            return;
        }
        if ticked.elapsed() >= super::PACE {
            following.sink().tick();
            ticked = Instant::now();
        }
        thread::sleep(PACE);
    }
}
