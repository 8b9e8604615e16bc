//! Options of reading an input.

use tamis_abi::Arch;
use tamis_policy::front_end;

use crate::assignment::Assignments;
use crate::bindings::Bindings;
use crate::kind::InputKind;

/// Options of reading an input. Typed options of languages, the members of [`policy`](Self::policy), are ignored for
/// other languages; named options are not.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The kind of the input; `None` detects it.
    pub kind: Option<InputKind>,
    /// Options of front ends: architectures, the kernel, strictness, and the options of single languages.
    pub policy: front_end::ParseOptions,
    /// Options of languages by name; they override the typed ones.
    pub named: Assignments,
    /// Values for run-time variables.
    pub bindings: Bindings,
    /// Whether variables may stay unbound, for comparison or later binding.
    pub keeps_variables: bool,
    /// Whether filters are for this machine's kernel, so that the other byte order is an error.
    pub is_for_this_machine: bool,
}

impl LoadOptions {
    /// The defaults on a machine of this architecture. A policy without architectures is for this one only, not for
    /// others that the machine also executes; calls of those are not allowed.
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

    /// The defaults for a program that contains its filter and binds the variables itself. A policy without
    /// architectures is for this one only.
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

    /// The architecture of programs, and of calls and tables without one: the first requested, otherwise the native
    /// one.
    pub fn call_arch(&self) -> Arch {
        self.policy.native()
    }
}
