//! The codes of this crate's diagnostics: each language declares its own, here are those of no single one.

pub use tamis_rules::code::*;

#[cfg(feature = "toml")]
pub use crate::matrix::code::*;
pub use crate::tamis::code::*;
#[cfg(feature = "languages")]
pub use crate::{
    firecracker::code::*, kafel::code::*, minijail::code::*, oci::code::*, spo::code::*,
    systemd::code::*,
};

tamis_diag::codes! { INSTALLATION;
    EXPORT_INSTALLATION = "TM1307", "installation flags and listener",
        "The policy sets flags for installing its filter, or the socket of a supervisor. The output, a \
         program or a policy in another language, cannot express these; pass them to the installer of the \
         filter.";
}
