//! The codes of this crate's diagnostics: each language declares its own, here are those that crates above report, too.

pub use tamis_rules::code::*;

#[cfg(feature = "toml")]
pub use crate::matrix::code::*;
pub use crate::tamis::code::*;
#[cfg(feature = "languages")]
pub use crate::{
    firecracker::code::*, kafel::code::*, lxc::code::*, minijail::code::*, oci::code::*,
    spo::code::*, systemd::code::*,
};

tamis_diag::codes! { SHARED;
    MINIJAIL_INCLUDE = "TM0908", "file cannot be read",
        "A file that the policy includes is missing, unreadable or not UTF-8. Paths are relative to the \
         file that names them, and begin with `/` or `./`. An unreadable frequency file is a warning: the \
         filter has the same meaning, only compiled without the counts.";
    EXPORT_INSTALLATION = "TM1307", "installation flags and listener",
        "The policy sets flags for installing its filter, or the socket of a supervisor. The output, a \
         program or a policy in another language, cannot express these; pass them to the installer of the \
         filter.";
}
