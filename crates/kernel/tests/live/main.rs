//! Tests against the running kernel.
//!
//! A filter can't be removed from a process, so every test that installs one starts this executable anew as a *victim*
//! (see [`victim`]), which does one thing and prints the result. The expected results come from the reference
//! interpreter: the kernel is the oracle.

mod dumping;
mod faults;
mod ignored;
mod installing;
mod limits;
mod load;
mod measuring;
mod notifying;
mod probing;
mod raw;
mod running;
mod support;
mod tracing;
mod verdicts;
mod victim;

use std::env;
use std::process::ExitCode;

use libtest_mimic::Trial;
use tamis_testkit::harness;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((victim::MARK, role)) = args.split_first().map(|(mark, role)| (mark.as_str(), role))
    {
        return victim::play(role);
    }
    let trials: Vec<Trial> = [
        probing::trials(),
        verdicts::trials(),
        installing::trials(),
        running::trials(),
        notifying::trials(),
        tracing::trials(),
        dumping::trials(),
        measuring::trials(),
        faults::trials(),
        ignored::trials(),
        limits::trials(),
        load::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Some play with load themselves, and the more filters are freed side by side, the closer the kernel is
    // to a hang (see the book's page about it).
    harness::run(trials, Some(1))
}
