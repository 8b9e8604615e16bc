//! The names that a policy defines: constants, sets of values, sets of calls.
//!
//! A name is defined above its first use, so definitions cannot be circular. A `let` is evaluated at its
//! definition, for every architecture and width: values differ between architectures, and the width is known only
//! at the comparison. If the evaluation fails, the diagnostic is kept until the name is used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tamis_abi::signature::Width;
use tamis_abi::{Arch, consts, syscall};
use tamis_diag::{Diagnostic, Span, suggest};
use tamis_rules::{IntervalSet, Variable};

use super::ast::{Constant, Declaration, Name};
use super::sets;
use super::value::{Number, Scope};
use super::variables::{self, Variables};
use crate::code;
use crate::limits::{MAX_NAMES, MAX_SET_ELEMENTS};
use crate::near::nearest_call;
use crate::sink::Sink;

/// A diagnostic in place of a result.
pub(super) type Checked<T> = Result<T, Box<Diagnostic>>;

/// The meaning of a `let` on one architecture at one width.
#[derive(Clone)]
pub(super) enum Meaning {
    /// One value.
    Value(Number),
    /// A set of values.
    Set(IntervalSet<u64>),
}

/// All names defined so far.
pub(super) struct Names {
    arches: Vec<Arch>,
    constants: BTreeMap<String, Definition>,
    sets: BTreeMap<String, CallSet>,
    variables: Variables,
    /// The total count of elements of all sets.
    set_elements: usize,
}

struct Definition {
    span: Span,
    meanings: BTreeMap<(Arch, Width), Checked<Meaning>>,
}

/// The names of the calls of a set.
pub(super) type Calls = Arc<BTreeSet<Arc<str>>>;

/// A set of system calls that the policy defines.
struct CallSet {
    span: Span,
    calls: Calls,
}

impl Names {
    /// No names but the built-in ones.
    pub(super) fn new(arches: &[Arch]) -> Names {
        Names {
            arches: arches.to_vec(),
            constants: BTreeMap::new(),
            sets: BTreeMap::new(),
            variables: Variables::default(),
            set_elements: 0,
        }
    }

    /// Defines a constant; reports an error in the definition even if it is not used.
    pub(super) fn define_constant(&mut self, name: &Name, constant: &Constant, sink: &mut Sink) {
        if let Some(earlier) = self.constants.get(&name.text) {
            sink.report(defined_twice(name, Some(earlier.span)));
            return;
        }
        if consts::is_known(&name.text) {
            sink.report(
                Diagnostic::warning(
                    code::SHADOWS_CONSTANT,
                    format!("`{name}` is a constant of the kernel"),
                )
                .label(name.span, "redefined here")
                .help("choose another name"),
            );
        }
        let mut meanings = BTreeMap::new();
        for &arch in &self.arches {
            let scope = Scope { names: self, arch };
            for width in Width::ALL {
                meanings.insert((arch, width), scope.meaning(constant, width));
            }
        }
        // The width is not known yet: only an error at all widths is certain.
        for &arch in &self.arches {
            let at = |width| &meanings[&(arch, width)];
            if let Err(diagnostic) = at(Width::Bits64)
                && Width::ALL.into_iter().all(|width| at(width).is_err())
            {
                sink.report((**diagnostic).clone());
            }
        }
        let elements = meanings.values().map(|meaning| match meaning {
            Ok(Meaning::Set(set)) => set.intervals().len(),
            _ => 0,
        });
        self.set_elements += elements.sum::<usize>();
        self.check_room(name, sink);
        let span = name.span;
        self.constants
            .insert(name.text.clone(), Definition { span, meanings });
    }

    /// Defines a set of calls.
    pub(super) fn define_set(&mut self, name: &Name, members: &[Name], sink: &mut Sink) {
        let earlier = self.sets.get(&name.text).map(|set| set.span);
        if earlier.is_some() || sets::built_in(&name.text).is_some() {
            sink.report(defined_twice(name, earlier));
            return;
        }
        let calls = self.calls_of(members, sink);
        self.set_elements += calls.len();
        self.check_room(name, sink);
        let set = CallSet {
            span: name.span,
            calls: Arc::new(calls),
        };
        self.sets.insert(name.text.clone(), set);
    }

    /// The meaning of an earlier `let` with this name, if any.
    pub(super) fn constant(
        &self,
        name: &str,
        arch: Arch,
        width: Width,
    ) -> Option<&Checked<Meaning>> {
        let definition = self.constants.get(name)?;
        definition.meanings.get(&(arch, width))
    }

    /// Declares a run-time variable, or a set of them.
    pub(super) fn declare_variable(&mut self, declaration: &Declaration, sink: &mut Sink) {
        // Kernel constants in a range are rare; those of the first architecture are used.
        let arch = self.arches[0];
        let range = variables::range(declaration, Scope { names: self, arch });
        match range {
            Ok(range) => self.variables.declare(declaration, range, sink),
            Err(diagnostic) => sink.report(*diagnostic),
        }
    }

    /// The run-time variables.
    pub(super) fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The run-time variables in order.
    pub(super) fn into_variables(self) -> Vec<Variable> {
        self.variables.into_list()
    }

    /// The names of all constants, for suggestions.
    pub(super) fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.keys().map(String::as_str)
    }

    /// The calls of the set with this name; reports an unknown name.
    pub(super) fn set(&self, name: &Name, sink: &mut Sink) -> Option<Calls> {
        let own = self.sets.get(&name.text).map(|set| &set.calls);
        let found = own.or_else(|| sets::built_in(&name.text));
        if found.is_none() {
            let diagnostic = Diagnostic::error(
                code::UNKNOWN_SET,
                format!("unknown set of system calls `{name}`"),
            )
            .label(name.span, "not built in and not defined above");
            let own = self.sets.keys().map(String::as_str);
            let candidates = own.chain(sets::built_in_names().map(|set| -> &str { set }));
            sink.report(suggest_from(diagnostic, &name.text, candidates));
        }
        found.cloned()
    }

    fn calls_of(&self, members: &[Name], sink: &mut Sink) -> BTreeSet<Arc<str>> {
        let mut calls = BTreeSet::new();
        for member in members {
            if sink.is_finished() {
                break;
            }
            if member.text.starts_with('@') {
                if let Some(set) = self.set(member, sink) {
                    calls.extend(set.iter().cloned());
                }
            } else if syscall::is_known(&member.text) {
                calls.insert(Arc::from(member.text.as_str()));
            } else {
                sink.report(unknown_call(member));
            }
        }
        calls
    }

    fn check_room(&self, name: &Name, sink: &mut Sink) {
        let names = self.constants.len() + self.sets.len();
        if names >= MAX_NAMES || self.set_elements > MAX_SET_ELEMENTS {
            sink.stop(
                Diagnostic::error(code::TAMIS_LIMIT, "too many names and sets")
                    .label(name.span, "parsing stops here")
                    .note(format!(
                        "a policy may define at most {MAX_NAMES} names, and sets of at most \
                         {MAX_SET_ELEMENTS} elements"
                    )),
            );
        }
    }
}

/// The error for a call that no architecture has.
pub(super) fn unknown_call(name: &Name) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        code::UNKNOWN_SYSCALL,
        format!("unknown system call `{name}`"),
    )
    .label(name.span, "not a system call of any architecture");
    match nearest_call(&name.text) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// Adds the nearest candidate as help, if there is one.
pub(super) fn suggest_from<'a>(
    diagnostic: Diagnostic,
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    match suggest::nearest(typed, candidates) {
        Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
        None => diagnostic,
    }
}

pub(super) fn defined_twice(name: &Name, earlier: Option<Span>) -> Diagnostic {
    let message = format!("`{name}` is defined twice");
    let diagnostic = Diagnostic::error(code::STATED_TWICE, message);
    match earlier {
        Some(earlier) => diagnostic
            .label(name.span, "defined again")
            .label(earlier, "first defined here"),
        None => diagnostic
            .label(name.span, "this set is built in")
            .help("choose another name"),
    }
}
