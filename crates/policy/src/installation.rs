//! Installation requirements of a policy: flags, and the supervisor that receives notifications.
//!
//! They are not part of the meaning, and a program can't contain them. A command that outputs the program of such a
//! policy reports them as a warning ([`Installation::left_out`]).

use tamis_diag::Diagnostic;

use crate::code;

/// Installation requirements of a policy, from an OCI profile or a `SeccompProfile` resource of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The names of flags, such as `SECCOMP_FILTER_FLAG_LOG`.
    pub flags: Vec<String>,
    /// The supervisor's socket for notifications.
    pub listener_path: Option<String>,
    /// Metadata for the supervisor.
    pub listener_metadata: Option<String>,
}

impl Installation {
    /// A description in phrases, one for each requirement.
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

    /// The warning that the compiled filter lacks these requirements; `None` if there are none.
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
