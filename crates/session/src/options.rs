//! What a caller may say of how to read an input.

use tamis_abi::Arch;
use tamis_policy::front_end;

use crate::assignment::Assignments;
use crate::bindings::Bindings;
use crate::kind::InputKind;

/// How to read an input. Typed options of languages, which are members of [`policy`](Self::policy), are ignored for
/// other languages; those that are given by name are not.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The kind of the input; `None` if it is to be detected.
    pub kind: Option<InputKind>,
    /// What front ends are told: architectures, the kernel, strictness, and the options of single languages.
    pub policy: front_end::ParseOptions,
    /// Options of languages by name, which replace those of the same meaning in `policy`.
    pub named: Assignments,
    /// Values for run-time variables.
    pub bindings: Bindings,
    /// Whether a policy may have variables without values: for whoever compares it, or binds it later.
    pub keeps_variables: bool,
    /// Whether filters are for this machine's kernel, so that one of the other byte order is of no use.
    pub is_for_this_machine: bool,
}

impl LoadOptions {
    /// The defaults on a machine of this architecture: a policy that names no architectures is for this one alone, not
    /// for others whose programs the machine runs. What a policy doesn't name it doesn't allow.
    ///
    /// ```
    /// use tamis_abi::Arch;
    /// use tamis_policy::loader::NoIncludes;
    /// use tamis_session::{Input, LoadOptions, load};
    ///
    /// let input = Input::new("a.tamis", "default errno(EPERM)\nallow read");
    /// let options = LoadOptions::new(Arch::X86_64);
    /// let policy = load(input, &options, &mut NoIncludes)?.into_policy("write a policy")?;
    /// assert_eq!(policy.arches(), [Arch::X86_64]);
    /// # Ok::<(), tamis_session::Error>(())
    /// ```
    pub fn new(native: Arch) -> LoadOptions {
        LoadOptions {
            kind: None,
            policy: front_end::ParseOptions::new(native),
            named: Assignments::default(),
            bindings: Bindings::default(),
            keeps_variables: false,
            is_for_this_machine: false,
        }
    }

    /// The defaults for a program of this architecture that brings its filter along and binds the variables itself: a
    /// policy that names no architectures is for this one alone.
    pub fn for_program(arch: Arch) -> LoadOptions {
        LoadOptions {
            policy: front_end::ParseOptions {
                asked_arches: vec![arch],
                stated_arches_win: true,
                ..front_end::ParseOptions::new(arch)
            },
            keeps_variables: true,
            ..LoadOptions::new(arch)
        }
    }

    /// The architecture of calls and tables that name none, and of programs: the first that was asked for, else the
    /// native one.
    pub fn call_arch(&self) -> Arch {
        self.policy.native()
    }
}
