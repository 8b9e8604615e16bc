//! Equivalent filters that are no worse: `tamis optimize`.

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};
use tamis_bpf::Program;
use tamis_bpf::ebpf_len::kernel_len_insns;
use tamis_compiler::CompileOptions;
use tamis_compiler::meter::measure_archs;
use tamis_optimize::{Method, Optimised, Rating, Rejected};

use crate::entry::{InputEntry, InsnEntry, JudgedEntry, counted, insns};
use crate::program::{ArchEntry, ProgramReport};

/// The result of an optimisation.
#[derive(Serialize)]
pub struct OptimizeReport {
    pub inputs: Vec<InputEntry>,
    pub how: MethodEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<JudgedEntry>,
    pub rejected: Vec<RejectedEntry>,
    pub before: RatingEntry,
    pub after: RatingEntry,
    pub filters: Vec<FilterEntry>,
}

/// The method of a result.
pub struct MethodEntry(pub Method);

impl Serialize for MethodEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self.0 {
            Method::LaidOutAnew => "laid_out_anew",
            Method::Split => "split",
            Method::Redispatched => "redispatched",
            Method::Passes => "passes",
            Method::Unchanged => "unchanged",
        })
    }
}

/// A method that was rejected.
#[derive(Serialize)]
pub struct RejectedEntry {
    pub how: MethodEntry,
    pub because: String,
    /// The method and the reason as text.
    #[serde(skip)]
    pub line: String,
}

/// The total cost of filters.
#[derive(Serialize)]
pub struct RatingEntry {
    pub filters: usize,
    pub length_insns: usize,
    pub kernel_length_insns: usize,
    pub is_installable: bool,
    pub numbers: usize,
    pub cached_numbers: usize,
    pub mean_steps: f64,
    pub uncached_mean_steps: f64,
    pub max_steps: u32,
}

/// A filter of the result.
#[derive(Serialize)]
pub struct FilterEntry {
    pub length_insns: usize,
    pub kernel_length_insns: usize,
    pub arches: Vec<ArchEntry>,
    pub insns: Vec<InsnEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ProgramReport>,
}

impl OptimizeReport {
    /// The report of a result; with the `options` of the compiler, each filter has its own report.
    pub fn from_optimised(
        inputs: Vec<InputEntry>,
        optimised: &Optimised,
        options: Option<&CompileOptions>,
    ) -> OptimizeReport {
        // The remarks apply to all filters together.
        let remarks = match optimised.programs() {
            [_] => optimised.remarks(),
            _ => &[],
        };
        let archs = optimised.archs();
        let filter = |program: &Program| FilterEntry {
            length_insns: program.len(),
            kernel_length_insns: kernel_len_insns(program),
            arches: measure_archs(std::slice::from_ref(program), archs)
                .iter()
                .map(ArchEntry::from_cost)
                .collect(),
            insns: insns(program.insns()),
            report: options
                .map(|options| ProgramReport::from_program(program, archs, remarks, options)),
        };
        let rejected = optimised.rejected().iter();
        OptimizeReport {
            inputs,
            how: MethodEntry(optimised.how()),
            judged: optimised.judged().copied().map(JudgedEntry),
            rejected: rejected.map(RejectedEntry::from_rejected).collect(),
            before: RatingEntry::from_rating(optimised.before()),
            after: RatingEntry::from_rating(optimised.after()),
            filters: optimised.programs().iter().map(filter).collect(),
        }
    }

    /// The method and the rejected ones, without the final newline.
    pub fn in_brief(&self) -> String {
        let mut text = match self.how.0 {
            Method::LaidOutAnew => "recompiled".to_owned(),
            Method::Split => format!("recompiled as {}", counted(self.filters.len(), "filter")),
            Method::Redispatched => "dispatch rebuilt, argument checks kept".to_owned(),
            Method::Passes => "optimised by passes".to_owned(),
            Method::Unchanged => "nothing better was found: the result is the input".to_owned(),
        };
        if let Some(JudgedEntry(judged)) = &self.judged {
            let _ = write!(text, "; proved equivalent ({judged})");
        }
        for rejected in &self.rejected {
            let _ = write!(text, "\n  {}", rejected.line);
        }
        text
    }
}

/// The methods, and the costs before and after.
impl fmt::Display for OptimizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.in_brief())?;
        writeln!(f, "  before  {}", self.before)?;
        writeln!(f, "  after   {}", self.after)
    }
}

impl RejectedEntry {
    fn from_rejected(rejected: &Rejected) -> RejectedEntry {
        RejectedEntry {
            how: MethodEntry(rejected.how),
            because: rejected.why.to_string(),
            line: rejected.to_string(),
        }
    }
}

impl RatingEntry {
    fn from_rating(rating: &Rating) -> RatingEntry {
        let (cost, all) = (&rating.cost, rating.cost.all());
        RatingEntry {
            filters: cost.filters,
            length_insns: cost.length_insns,
            kernel_length_insns: cost.kernel_insns,
            is_installable: rating.is_installable,
            numbers: cost.numbers,
            cached_numbers: cost.cached_numbers,
            mean_steps: all.mean_steps(),
            uncached_mean_steps: cost.uncached.mean_steps(),
            max_steps: all.max_steps,
        }
    }
}

impl fmt::Display for RatingEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} ({} in the kernel); {:.1} steps on average, {} at most; {} of {} cached, {:.1} steps for the \
             others",
            counted(self.filters, "filter"),
            counted(self.length_insns, "instruction"),
            self.kernel_length_insns,
            self.mean_steps,
            self.max_steps,
            self.cached_numbers,
            counted(self.numbers, "number"),
            self.uncached_mean_steps,
        )
    }
}
