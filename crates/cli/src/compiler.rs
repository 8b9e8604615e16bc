//! Options of the compiler that `compile` and `optimize` share.

use tamis_compiler::meter::Cost;
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{CompileOptions, PassRun, Remark, Size};
use tamis_report::entry::counted;
use tamis_session::LoadOptions;

use super::limits::LimitArgs;
use super::target::TargetArgs;
use super::{Failure, Global, message};

/// Options of the compiler.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Compiling")]
pub struct CompilerArgs {
    /// The passes to run, in order, separated by commas; `none` for no passes [default: all]
    #[arg(long, value_name = "NAMES")]
    passes: Option<String>,
    /// Stop the passes after this many changes, to find a faulty one
    #[arg(long, value_name = "COUNT")]
    fuel: Option<u64>,
    /// Print on standard error what each run of a pass changed, with sizes and costs of calls before and
    /// after
    #[arg(long)]
    remarks: bool,
    /// Also print the length and the costs of calls
    ///
    /// On standard error, with what the instructions are for, and a lower bound of the steps.
    #[arg(long, help_heading = None)]
    pub stats: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl CompilerArgs {
    /// The options for the compiler.
    pub fn options(&self, load: &LoadOptions, global: &Global) -> Result<CompileOptions, Failure> {
        let passes = self.passes.as_deref();
        Ok(CompileOptions {
            passes: passes.map_or(Ok(Selection::default()), selection)?,
            fuel: self.fuel,
            proof: self.limits.effort(),
            measure_runs: self.remarks || (self.stats && global.json),
            ..self.target.options(load, global)?
        })
    }

    /// Prints the remarks of the passes, if `--remarks` was given.
    pub fn print_remarks(&self, remarks: &[Remark]) {
        if self.remarks {
            for run in remarks.chunk_by(|a, b| a.run.number == b.run.number) {
                message(&run_line(&run[0]));
                if let Some(line) = cost_line(&run[0].run) {
                    message(&line);
                }
                for remark in run {
                    message(&remark_line(remark));
                }
            }
        }
    }
}

/// The heading of a pass run: its scope and the size before and after.
fn run_line(first: &Remark) -> String {
    let Remark { pass, run, .. } = first;
    let place = run.arch.map(|arch| format!(" {arch}")).unwrap_or_default();
    let (before, after) = (run.before, run.after);
    format!("run {}{place}: {pass}: {before} -> {after}", run.number)
}

/// The costs of calls that a pass run changed.
fn cost_line(run: &PassRun) -> Option<String> {
    let cost = |size| match size {
        Size::Program { cost, .. } => cost,
        Size::Rules { .. } => None,
    };
    let (before, after) = (cost(run.before)?, cost(run.after)?);
    let mut parts = Vec::new();
    let mut compare = |what: &str, figure: &dyn Fn(&Cost) -> String| {
        let (before, after) = (figure(&before), figure(&after));
        if before != after {
            parts.push(format!("{what} {before} -> {after}"));
        }
    };
    compare("steps", &|cost| format!("{:.2}", cost.all().mean_steps()));
    compare("steps of uncached calls", &|cost| {
        format!("{:.2}", cost.uncached.mean_steps())
    });
    compare("most steps", &|cost| cost.all().max_steps.to_string());
    compare("steps in the kernel", &|cost| {
        format!("{:.2}", cost.all().mean_kernel_steps())
    });
    compare("instructions in the kernel", &|cost| {
        cost.kernel_insns.to_string()
    });
    compare("cached numbers", &|cost| cost.cached_numbers.to_string());
    (!parts.is_empty()).then(|| format!("  {}", parts.join(", ")))
}

/// One change of a pass.
fn remark_line(remark: &Remark) -> String {
    match remark.saved_insns {
        0 => format!("  {}", remark.what),
        saved => format!(
            "  {} ({} saved)",
            remark.what,
            counted(saved, "instruction")
        ),
    }
}

/// Parses a list of passes.
pub fn selection(names: &str) -> Result<Selection, Failure> {
    let names = names.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty() && *name != "none");
    Selection::named(names)
        .map_err(|error| Failure::usage(error.to_string(), "`tamis bpf passes` lists them"))
}
