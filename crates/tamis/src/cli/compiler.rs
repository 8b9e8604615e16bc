//! What the compiler is to do: options that `compile` and `optimize` share.

use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{Options, Remark};

use super::limits::LimitArgs;
use super::load::LoadArgs;
use super::target::TargetArgs;
use super::{Failure, Global, message};

/// What the compiler is to do.
#[derive(clap::Args, Debug)]
pub(crate) struct CompilerArgs {
    /// The passes to run, in order, separated by commas; `none` for none [default: all]
    #[arg(long, value_name = "NAMES")]
    passes: Option<String>,
    /// Stop the passes after this many changes, to find the one that matters
    #[arg(long, value_name = "COUNT")]
    fuel: Option<u64>,
    /// Say what each pass changed, on standard error
    #[arg(long)]
    remarks: bool,
    /// Also say how long the result is, what calls cost, where the instructions go, and how few steps are
    /// possible, on standard error
    #[arg(long)]
    pub(crate) stats: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl CompilerArgs {
    /// The options for the compiler.
    pub(crate) fn options(&self, load: &LoadArgs, global: &Global) -> Result<Options, Failure> {
        let passes = self.passes.as_deref();
        Ok(Options {
            passes: passes.map_or(Ok(Selection::default()), selection)?,
            fuel: self.fuel,
            proof: self.limits.effort(),
            ..self.target.options(load, global)?
        })
    }

    /// Says what passes changed, if the user wants to know.
    pub(crate) fn tell(&self, remarks: &[Remark]) {
        if self.remarks {
            for remark in remarks {
                message(&remark_line(remark));
            }
        }
    }
}

/// What a pass changed, for a person.
fn remark_line(remark: &Remark) -> String {
    let Remark {
        pass,
        what,
        saved_insns,
    } = remark;
    format!("{pass}: {what} ({saved_insns} instructions saved)")
}

/// The passes of a list on the command line.
pub(crate) fn selection(names: &str) -> Result<Selection, Failure> {
    let names = names.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty() && *name != "none");
    Selection::named(names)
        .map_err(|error| Failure::usage(error.to_string(), "`tamis passes` lists them"))
}
