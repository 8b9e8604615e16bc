//! Developer tasks: `cargo xtask <task>`.

mod codegen;
mod counts;
mod tidy;

/// The tasks, for messages.
const TASKS: &str = "codegen, counts, tidy";

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("codegen") => codegen::run(args),
        Some("counts") => counts::run(),
        Some("tidy") => tidy::run(),
        Some(other) => anyhow::bail!("unknown task `{other}`; tasks: {TASKS}"),
        None => anyhow::bail!("which task? tasks: {TASKS}"),
    }
}
