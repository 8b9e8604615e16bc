//! Developer tasks: `cargo xtask <task>`.

mod tidy;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("tidy") => tidy::run(),
        Some(other) => anyhow::bail!("unknown task `{other}`; tasks: tidy"),
        None => anyhow::bail!("which task? tasks: tidy"),
    }
}
