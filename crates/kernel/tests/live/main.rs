//! Tests against the running kernel.
//!
//! A filter can't be removed from a process, so every test that installs one starts this executable
//! anew as a *victim* (see [`victim`]), which does one thing and tells what came of it. Expectations
//! come from the reference interpreter, not from numbers written down here: the kernel is the judge.

mod dumping;
mod faults;
mod installing;
mod limits;
mod load;
mod measuring;
mod notifying;
mod probing;
mod raw;
mod running;
mod support;
mod verdicts;
mod victim;

use std::env;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use tamis_testkit::skip::{self, Need};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((victim::MARK, role)) = args.split_first().map(|(mark, role)| (mark.as_str(), role))
    {
        return victim::play(role);
    }
    if !tamis_kernel::probe().filter_mode.is_present() {
        skip::because(Need::Live, "this kernel has no seccomp filters");
        return ExitCode::SUCCESS;
    }
    let trials: Vec<Trial> = [
        probing::trials(),
        verdicts::trials(),
        installing::trials(),
        running::trials(),
        notifying::trials(),
        dumping::trials(),
        measuring::trials(),
        faults::trials(),
        limits::trials(),
        load::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
