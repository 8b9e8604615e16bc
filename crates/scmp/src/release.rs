//! The releases of libseccomp whose interface tamis has.
//!
//! 2.6.1 is the reference, for programs and for tests. Its main branch has more, for which there is no release yet.

/// A release of libseccomp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// 2.6.1
    #[default]
    Reference,
    /// The main branch after it, of 2025: `seccomp_notify_addfd`, `SCMP_ACT_TRAPX`, `seccomp-kvers.h`.
    Next,
}

impl Release {
    /// Major, minor and micro version. That of the main branch isn't decided; programs compare versions, so it is one
    /// after 2.6.
    pub const fn version(self) -> [u32; 3] {
        match self {
            Release::Reference => [2, 6, 1],
            Release::Next => [2, 7, 0],
        }
    }

    /// Whether the action to trap has data.
    pub const fn traps_have_data(self) -> bool {
        matches!(self, Release::Next)
    }
}
