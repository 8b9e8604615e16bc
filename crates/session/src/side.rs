//! One side of a comparison: a policy, a program, or several filters as a stack.
//!
//! A policy stands for what it means, not for what tamis compiles it to. [`SideOptions`] say how to read one side
//! where that differs from the other.

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

/// What is compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// As the user named it.
    pub name: String,
    /// One filter, or those of a stack, the oldest first.
    filters: Vec<Loaded>,
    is_stack: bool,
}

impl Side {
    /// A single filter, or those of a stack, the oldest first.
    pub fn new(name: impl Into<String>, filters: Vec<Loaded>, is_stack: bool) -> Side {
        Side {
            name: name.into(),
            filters,
            is_stack,
        }
    }

    /// Programs as the filters of a task, the oldest first, or the one filter that there is.
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

    /// The filters that it stands for.
    pub fn filters(&self) -> &[Loaded] {
        &self.filters
    }

    /// The same, to be changed.
    pub fn filters_mut(&mut self) -> impl Iterator<Item = &mut Loaded> {
        self.filters.iter_mut()
    }

    /// The same, to be used up.
    pub fn into_filters(self) -> Vec<Loaded> {
        self.filters
    }

    /// Hands it to the prover.
    pub fn with_subject<R>(&self, then: impl FnOnce(&Subject<'_>) -> R) -> R {
        let subjects: Vec<Subject<'_>> = self.filters.iter().map(Loaded::subject).collect();
        match subjects.as_slice() {
            [subject] if !self.is_stack => then(subject),
            subjects => then(&Subject::Stack(subjects)),
        }
    }

    /// Whether both are policies of the same texts, which are the same by whatever options they are read.
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

    /// Whether both are written alike: the same instructions, or the same rules up to their places.
    pub fn is_identical(&self, other: &Side) -> bool {
        self.with_subject(|own| other.with_subject(|other| own.is_identical(other)))
    }

    /// What it returns for one input, by the evaluator and the interpreter.
    pub fn answer(&self, input: &Input) -> u32 {
        self.with_subject(|subject| subject.answer(input))
    }

    /// The architectures that it names.
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

/// How to read one side, where that differs from the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideOptions {
    /// The kind of its inputs: `from`.
    pub kind: Option<InputKind>,
    /// Further folders of included files: `include-dir`.
    pub include_dirs: Vec<PathBuf>,
    /// The oldest kernel that runs it: `kernel`.
    pub kernel: Option<KernelVersion>,
    /// Options of its language.
    pub named: Vec<Assignment>,
}

impl SideOptions {
    /// Reads `NAME=VALUE`, one option each.
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
    /// If there is no such kind or version, or no language has an option of the name. Whether the language of the side
    /// has it turns out when the side is read.
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

    /// How to read the side; `common` is for both.
    #[must_use]
    pub fn over(&self, common: &LoadOptions) -> LoadOptions {
        let mut options = common.clone();
        options.kind = self.kind.or(options.kind);
        options.policy.kernel = self.kernel.or(options.policy.kernel);
        options.named = options.named.replaced_by(&self.named);
        options
    }

    /// Refuses options without effect on the side.
    ///
    /// # Errors
    /// If its language lacks an option, or does not depend on the kernel's version.
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

/// A value of an option that every side has.
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
