//! One side of a comparison: a policy, a program, or several filters as a stack.
//!
//! A policy is compared by its rules, not by its compiled program. [`SideOptions`] are the options of one side that
//! differ from the other.

use std::path::PathBuf;

use tamis_abi::{Arch, KernelVersion};
use tamis_bpf::Program;
use tamis_prover::Subject;
use tamis_rules::Input;

use crate::assignment::{Assignment, Assignments};
use crate::error::Error;
use crate::kind::InputKind;
use crate::loaded::{Loaded, NamedProgram};
use crate::options::LoadOptions;

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// The name that the user gave.
    pub name: String,
    /// One filter, or the stack with the oldest first.
    filters: Vec<Loaded>,
    is_stack: bool,
}

impl Side {
    /// A single filter, or a stack with the oldest first.
    pub fn new(name: impl Into<String>, filters: Vec<Loaded>, is_stack: bool) -> Side {
        Side {
            name: name.into(),
            filters,
            is_stack,
        }
    }

    /// A single program, or the filters of a task with the oldest first.
    pub fn of_programs(name: String, programs: Vec<Program>) -> Side {
        let is_stack = programs.len() != 1;
        let loaded = |program| {
            Loaded::Program(NamedProgram {
                name: name.clone(),
                program,
            })
        };
        Side {
            filters: programs.into_iter().map(loaded).collect(),
            is_stack,
            name,
        }
    }

    /// The filters.
    pub fn filters(&self) -> &[Loaded] {
        &self.filters
    }

    /// The filters, mutable.
    pub fn filters_mut(&mut self) -> impl Iterator<Item = &mut Loaded> {
        self.filters.iter_mut()
    }

    /// The filters, owned.
    pub fn into_filters(self) -> Vec<Loaded> {
        self.filters
    }

    /// Calls a function with the side as a subject of the prover.
    pub fn with_subject<R>(&self, then: impl FnOnce(&Subject<'_>) -> R) -> R {
        let subjects: Vec<Subject<'_>> = self.filters.iter().map(Loaded::subject).collect();
        match subjects.as_slice() {
            [subject] if !self.is_stack => then(subject),
            subjects => then(&Subject::Stack(subjects)),
        }
    }

    /// Whether both sides are policies with the same texts; then they are equal under any options.
    pub fn has_texts_of(&self, other: &Side) -> bool {
        let texts = |side: &Side| -> Option<Vec<String>> {
            let mut texts = Vec::new();
            for filter in &side.filters {
                let Loaded::Policy(policy) = filter else {
                    return None;
                };
                texts.push(policy.kind.name().to_owned());
                texts.extend(
                    policy
                        .sources
                        .with_ids()
                        .map(|(_, source)| source.text.to_string()),
                );
            }
            Some(texts)
        };
        texts(self).is_some_and(|own| texts(other) == Some(own))
    }

    /// Whether both sides are syntactically equal: the same instructions, or the same rules apart from their places.
    pub fn is_identical(&self, other: &Side) -> bool {
        self.with_subject(|own| other.with_subject(|other| own.is_identical(other)))
    }

    /// The value returned for one input, by the evaluator and the interpreter.
    pub fn answer(&self, input: &Input) -> u32 {
        self.with_subject(|subject| subject.answer(input))
    }

    /// The architectures of the filters.
    pub fn arches(&self) -> Vec<Arch> {
        let is_named = |arch: &Arch| {
            self.filters.iter().any(|filter| match filter {
                Loaded::Policy(policy) => {
                    let mut sections = policy.ruleset.sections().iter();
                    sections.any(|section| section.arch == *arch)
                }
                Loaded::Program(raw) => {
                    let mut insns = raw.program.insns().iter();
                    insns.any(|insn| insn.k == arch.audit())
                }
            })
        };
        Arch::all().filter(is_named).collect()
    }
}

/// The options of one side that differ from the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideOptions {
    /// The kind of the inputs: `from`.
    pub kind: Option<InputKind>,
    /// Additional folders of included files: `include-dir`.
    pub include_dirs: Vec<PathBuf>,
    /// The oldest supported kernel: `kernel`.
    pub kernel: Option<KernelVersion>,
    /// Options of the language.
    pub named: Vec<Assignment>,
}

impl SideOptions {
    /// Parses `NAME=VALUE`, one option each.
    ///
    /// ```
    /// use tamis_session::{Assignment, SideOptions};
    /// let options = SideOptions::parse(&["from=minijail", "dialect=c"])?;
    /// assert_eq!(options.kind.map(|kind| kind.name()), Some("minijail"));
    /// assert_eq!(options.named, [Assignment::new("dialect", "c")]);
    /// # Ok::<(), tamis_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such kind or version, or no language has an option with the name. An option that the side's
    /// language lacks is reported when the side is read.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<SideOptions, Error> {
        let mut options = SideOptions::default();
        for text in texts {
            let assignment = Assignment::parse(text.as_ref());
            match (assignment.name.as_str(), &assignment.value) {
                ("from", Some(name)) => options.kind = Some(InputKind::named(name)?),
                ("include-dir", Some(folder)) => options.include_dirs.push(folder.into()),
                ("kernel", Some(version)) => options.kernel = Some(kernel(version)?),
                (name @ ("from" | "include-dir" | "kernel"), None) => {
                    return Err(Error::usage(
                        format!("`{name}` has no value"),
                        format!("write it behind a `=`: `{name}={}`", example(name)),
                    ));
                }
                _ => {
                    assignment.check_name()?;
                    options.named.push(assignment);
                }
            }
        }
        Ok(options)
    }

    /// The options of the side; `common` are those of both.
    #[must_use]
    pub fn over(&self, common: &LoadOptions) -> LoadOptions {
        let mut options = common.clone();
        options.kind = self.kind.or(options.kind);
        options.policy.kernel = self.kernel.or(options.policy.kernel);
        options.named = options.named.replaced_by(&self.named);
        options
    }

    /// Rejects options without effect on the side.
    ///
    /// # Errors
    /// If the language lacks an option, or doesn't depend on the kernel's version.
    pub fn check(&self, side: &Side) -> Result<(), Error> {
        let kinds = side.filters().iter().map(Loaded::kind);
        let named = Assignments {
            list: self.named.clone(),
            is_shared: side.filters().len() > 1,
        };
        match side.filters() {
            [only] => named.check_input(&side.name, only.kind())?,
            _ => named.check_kinds(kinds.clone())?,
        }
        if self.kernel.is_some() && !kinds.clone().any(InputKind::uses_kernel) {
            return Err(Error::usage(
                format!("`kernel` has no effect on {}", side.name),
                "omit it: only OCI profiles and systemd units depend on the kernel",
            ));
        }
        Ok(())
    }
}

/// An example value of an option that every side has.
fn example(name: &str) -> &'static str {
    match name {
        "from" => "oci",
        "kernel" => "5.4",
        _ => "DIR",
    }
}

fn kernel(text: &str) -> Result<KernelVersion, Error> {
    text.parse().map_err(|_| {
        Error::usage(
            format!("`{text}` is not a kernel version"),
            "write a version such as `kernel=5.4`",
        )
    })
}
