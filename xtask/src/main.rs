//! Developer tasks: `cargo xtask <task>`.

use std::process::ExitCode;

mod arch;
mod codegen;
mod counts;
mod doctor;
mod kernels;
mod programs;
mod release;
mod selftests;
mod slim;
mod tidy;

/// The tasks, for messages.
const TASKS: &str =
    "codegen, counts, dist, doctor, exec, kernels, release, selftests, slim, tidy, vectors";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    match args.next().as_deref() {
        Some("codegen") => codegen::run(args),
        Some("counts") => counts::run(),
        Some("dist") => programs::TAMIS.build(programs::arch_of(args)?).map(drop),
        Some("doctor") => doctor::run(),
        Some("exec") => programs::EXEC.build(programs::arch_of(args)?).map(drop),
        Some("kernels") => kernels::run(args),
        Some("release") => release::run(args),
        Some("selftests") => selftests::run(args),
        Some("slim") => slim::run(),
        Some("tidy") => tidy::run(args),
        Some("vectors") => selftests::vectors::run(),
        Some(other) => anyhow::bail!("unknown task `{other}`; tasks: {TASKS}"),
        None => anyhow::bail!("which task? tasks: {TASKS}"),
    }
}
