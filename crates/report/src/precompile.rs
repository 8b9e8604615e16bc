//! The filters of a policy for all combinations of its options: `tamis precompile`.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::entry::{InsnEntry, counted};

/// A family of filters; also the index of a directory that contains them.
#[derive(Serialize)]
pub struct PrecompileReport {
    pub matrix: String,
    pub arches: Vec<&'static str>,
    pub options: Vec<OptionEntry>,
    pub variables: Vec<VariableEntry>,
    pub sizes: SizesEntry,
    pub filters: Vec<FilterEntry>,
    pub configurations: Vec<ConfigurationEntry>,
}

/// An option and its values.
#[derive(Serialize)]
pub struct OptionEntry {
    pub name: String,
    pub values: Vec<String>,
}

/// A run-time variable, or an element of a set.
#[derive(Serialize)]
pub struct VariableEntry {
    pub name: String,
    pub element: Option<u32>,
    pub width: &'static str,
}

/// The sizes of the filters in memory.
#[derive(Serialize)]
pub struct SizesEntry {
    pub separate_bytes: usize,
    pub distinct_bytes: usize,
    pub shared_bytes: usize,
}

/// A distinct filter, with its instructions or the file that contains them.
#[derive(Serialize)]
pub struct FilterEntry {
    pub length_insns: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insns: Option<Vec<InsnEntry>>,
    pub patches: Vec<PatchEntry>,
}

/// An instruction with half of a variable's value as its constant.
#[derive(Serialize)]
pub struct PatchEntry {
    pub insn: u16,
    pub variable: u8,
    pub half: &'static str,
}

/// A combination of values, one for each option, and its filter.
#[derive(Serialize)]
pub struct ConfigurationEntry {
    pub values: Vec<String>,
    pub filter: usize,
    pub ranges: Vec<[u64; 2]>,
}

impl PrecompileReport {
    /// The summary: counts, lengths and sizes.
    pub fn summary(&self) -> String {
        let lengths = || self.configurations.iter().map(|own| self.length_insns(own));
        let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
        let combinations = self.configurations.len();
        let mean = lengths().sum::<usize>() as f64 / combinations.max(1) as f64;
        let all: usize = self.options.iter().map(|own| own.values.len()).product();
        let excluded = match all - combinations {
            0 => String::new(),
            excluded => format!(" ({excluded} left out)"),
        };
        let sizes = &self.sizes;
        let share = |bytes: usize| 100.0 * bytes as f64 / sizes.separate_bytes.max(1) as f64;
        let mut text = format!(
            "{}: {} of {}{excluded}, {}, proved equivalent to the policy\n",
            self.matrix,
            counted(combinations, "combination"),
            counted(self.options.len(), "option"),
            counted(self.filters.len(), "different filter"),
        );
        let _ = writeln!(
            text,
            "  instructions    {least} to {most}, {mean:.1} on average"
        );
        let rows = [
            ("one by one", sizes.separate_bytes),
            ("equal ones once", sizes.distinct_bytes),
            ("parts shared", sizes.shared_bytes),
        ];
        for (what, bytes) in rows {
            let _ = writeln!(text, "  {what:<15} {bytes} bytes ({:.0} %)", share(bytes));
        }
        text
    }

    fn length_insns(&self, configuration: &ConfigurationEntry) -> usize {
        self.filters[configuration.filter].length_insns
    }

    /// The name of a combination: `network=host debug=true`.
    fn title(&self, configuration: &ConfigurationEntry) -> String {
        let named = self.options.iter().zip(&configuration.values);
        let parts: Vec<String> = named
            .map(|(option, value)| format!("{}={value}", option.name))
            .collect();
        parts.join(" ")
    }
}

/// The summary, and a line for each combination.
impl fmt::Display for PrecompileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        let titles = self.configurations.iter().map(|own| self.title(own));
        let titles: Vec<String> = titles.collect();
        let width = titles.iter().map(String::len).max().unwrap_or(0);
        let mut firsts: Vec<Option<&str>> = vec![None; self.filters.len()];
        for (own, title) in self.configurations.iter().zip(&titles) {
            let about = match firsts[own.filter] {
                Some(first) => format!("as {first}"),
                None => counted(self.length_insns(own), "instruction"),
            };
            firsts[own.filter].get_or_insert(title);
            writeln!(f, "  {title:<width$}  {about}")?;
        }
        Ok(())
    }
}
