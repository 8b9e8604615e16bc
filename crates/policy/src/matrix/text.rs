//! The policy of one combination, in the tamis language.
//!
//! Definitions come first, because they must precede their use; then the rules of the options, which are exceptions
//! from the policy and so precede it; then the policy.

use super::Matrix;

impl Matrix {
    /// The policy of a combination as a text in the tamis language, for a file beside the matrix; `None` if it has no
    /// policy.
    pub fn policy_text(&self, values: &[usize]) -> Option<String> {
        let settings = self.settings(values);
        let mut lines = Vec::new();
        for (name, rest) in &settings.lets {
            lines.push(format!("let {name}{rest}"));
        }
        for (name, members) in &settings.sets {
            let members: Vec<&str> = members.iter().map(|member| member.value.as_str()).collect();
            lines.push(format!("set @{name} = {{{}}}", members.join(", ")));
        }
        lines.extend(
            settings
                .rules
                .iter()
                .map(|rules| rules.value.trim_end().to_owned()),
        );
        let files = settings.includes.iter().chain([settings.policy.as_ref()?]);
        lines.extend(files.map(|path| format!("include \"{path}\"")));
        Some(lines.join("\n") + "\n")
    }
}
