//! Developer tasks: `cargo xtask <task>`.

mod codegen;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("codegen") => codegen::run(args),
        Some(other) => anyhow::bail!("unknown task `{other}`; tasks: codegen"),
        None => anyhow::bail!("which task? tasks: codegen"),
    }
}
