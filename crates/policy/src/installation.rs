//! What a policy wants of whoever installs its filter: flags, and a supervisor that listens.
//!
//! It is no part of the meaning, and no program has room for it. A command that hands out a program made of such a
//! policy warns of it ([`Installation::left_out`]).

use tamis_diag::{Diagnostic, code};

/// What a policy wants of whoever installs its filter. OCI profiles and the SeccompProfile resources of Kubernetes have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The names of flags, such as `SECCOMP_FILTER_FLAG_LOG`.
    pub flags: Vec<String>,
    /// Where a supervisor listens for the calls that the filter hands over.
    pub listener_path: Option<String>,
    /// Metadata for the supervisor.
    pub listener_metadata: Option<String>,
}

impl Installation {
    /// All of it for a person, a phrase each.
    ///
    /// ```
    /// use tamis_policy::installation::Installation;
    /// let listening = Installation {
    ///     listener_path: Some("/run/agent.sock".to_owned()),
    ///     ..Installation::default()
    /// };
    /// assert_eq!(listening.phrases(), ["the listener /run/agent.sock"]);
    /// assert!(Installation::default().phrases().is_empty());
    /// ```
    pub fn phrases(&self) -> Vec<String> {
        let path = self.listener_path.iter();
        let path = path.map(|path| format!("the listener {path}"));
        let metadata = self.listener_metadata.iter();
        let metadata = metadata.map(|text| format!("its metadata {text}"));
        self.flags
            .iter()
            .cloned()
            .chain(path)
            .chain(metadata)
            .collect()
    }

    /// The warning that a compiled filter doesn't say it; none if there is nothing to say.
    pub fn left_out(&self) -> Option<Diagnostic> {
        let phrases = self.phrases();
        let message = format!(
            "a compiled filter does not contain its installation options: {}",
            phrases.join(", ")
        );
        let help = "set the flags when installing the filter; send the listener's descriptor to the \
         supervisor";
        (!phrases.is_empty())
            .then(|| Diagnostic::warning(code::EXPORT_INSTALLATION, message).help(help))
    }
}
