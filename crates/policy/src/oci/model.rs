//! A profile as written: the result of [`super::read`], before selection. Everything is checked except whether an
//! architecture has the calls.

use tamis_abi::syscall::Name;
use tamis_abi::{Action, Arch};
use tamis_diag::Span;

/// A profile, of the OCI runtime specification or of the container engines.
#[derive(Debug)]
pub(super) struct Profile<'t> {
    /// The action if no entry matches.
    pub(super) default: Action,
    /// `architectures`, in order.
    pub(super) arches: Vec<Arch>,
    /// `archMap`: selected by the native architecture.
    pub(super) arch_map: Vec<ArchFamily>,
    /// `flags`, as written.
    pub(super) flags: Vec<String>,
    /// `listenerPath`.
    pub(super) listener_path: Option<String>,
    /// `listenerMetadata`.
    pub(super) listener_metadata: Option<String>,
    /// `syscalls`, in order.
    pub(super) entries: Vec<Entry<'t>>,
}

/// An element of `archMap`.
#[derive(Debug)]
pub(super) struct ArchFamily {
    /// The native architecture that selects it.
    pub(super) native: Arch,
    /// The architectures added for it.
    pub(super) others: Vec<Arch>,
}

/// An element of `syscalls`.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    /// The whole element.
    pub(super) span: Span,
    /// The names of calls.
    pub(super) names: Vec<CallName<'t>>,
    /// The action.
    pub(super) action: Action,
    /// The conditions in order.
    pub(super) args: Vec<Condition>,
    /// The condition for the entry to apply.
    pub(super) includes: Selector,
    /// The condition for the entry to be ignored.
    pub(super) excludes: Selector,
}

/// The name of a call.
#[derive(Debug)]
pub(super) struct CallName<'t> {
    /// As written.
    pub(super) text: &'t str,
    /// Its span.
    pub(super) span: Span,
    /// The name in the tables.
    pub(super) known: Option<Name>,
}

/// `includes` or `excludes` of an entry.
#[derive(Debug, Default)]
pub(super) struct Selector {
    /// Capabilities, as written.
    pub(super) caps: Vec<String>,
    /// Architectures by the engines' names.
    pub(super) arches: Vec<Arch>,
    /// Whether the member `arches` has elements; unknown ones are not in the list.
    pub(super) has_arches: bool,
    /// `minKernel`.
    pub(super) min_kernel: Option<KernelVersion>,
}

pub(super) use tamis_abi::KernelVersion;

/// One condition on an argument.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Its span.
    pub(super) span: Span,
    /// The comparison.
    pub(super) test: tamis_scmp::Condition,
}
