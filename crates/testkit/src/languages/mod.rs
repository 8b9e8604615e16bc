//! Rulesets as texts of every policy language, and back.
//!
//! A new language is added to the table [`ALL`]: a printer for the rulesets it can express, which need not be short
//! or pretty, and its parser with the options under which the text is equivalent.

mod conditions;
mod oci;

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Sources};
use tamis_export::tamis::{self as export, Style};
use tamis_policy::front_end::ParseOptions;
use tamis_policy::loader::NoIncludes;
use tamis_policy::{
    Parsed, firecracker, kafel, lxc, minijail, nsjail, oci as profiles, snap, spo, systemd, tamis,
};
use tamis_rules::{Predicate, Ruleset, Section, Test, text};

/// A policy language.
pub struct Language {
    /// Its name for `--from`.
    pub name: &'static str,
    /// A text that is equivalent to a ruleset, at least for calls of its architectures; `None` if the language cannot
    /// express it.
    pub print: fn(&Ruleset) -> Option<String>,
    /// Whether there is a text for every [plain](crate::generate::plain) ruleset.
    pub has_all_plain: bool,
    /// The ruleset of a text, for x86_64 unless the text names architectures.
    parse: fn(&mut Sources, SourceId) -> Result<Ruleset, Vec<Diagnostic>>,
}

/// All languages.
pub const ALL: [Language; 11] = [
    Language {
        name: "rules",
        print: |ruleset| Some(ruleset.to_string()),
        has_all_plain: true,
        parse: |sources, source| text::parse(sources, source),
    },
    Language {
        name: "tamis",
        print: |ruleset| export::policy(ruleset, Style::Explicit).ok(),
        has_all_plain: true,
        parse: |sources, source| {
            let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
            meaning(tamis::parse(sources, source, &mut NoIncludes, &options))
        },
    },
    Language {
        name: "oci",
        print: oci::oci_profile,
        has_all_plain: true,
        parse: |sources, source| {
            let options = profiles::OciOptions::docker(Arch::X86_64);
            meaning(profiles::parse(sources, source, &options).parsed)
        },
    },
    Language {
        name: "spo",
        print: oci::spo_resource,
        has_all_plain: false,
        parse: |sources, source| {
            let options = profiles::OciOptions::docker(Arch::X86_64);
            meaning(spo::parse(sources, source, &options).parsed)
        },
    },
    Language {
        name: "firecracker",
        print: conditions::firecracker,
        has_all_plain: false,
        parse: |sources, source| {
            let options = firecracker::FirecrackerOptions::new(Arch::X86_64);
            meaning(firecracker::parse(sources, source, &options))
        },
    },
    Language {
        name: "minijail",
        print: conditions::minijail,
        has_all_plain: false,
        parse: |sources, source| {
            let mut options = minijail::MinijailOptions::new(Arch::X86_64);
            options.settings.dialect = Some(minijail::Dialect::Python);
            let default = conditions::minijail_default(&sources.get(source).text);
            options.settings.default_action = default.and_then(|action| action.parse().ok());
            meaning(minijail::parse(sources, source, &mut NoIncludes, &options).parsed)
        },
    },
    Language {
        name: "kafel",
        print: conditions::kafel,
        has_all_plain: true,
        parse: |sources, source| {
            let options = kafel::KafelOptions::new(Arch::X86_64);
            meaning(kafel::parse(sources, source, &mut NoIncludes, &options))
        },
    },
    Language {
        name: "nsjail",
        print: |ruleset| {
            let policy = conditions::kafel(ruleset)?;
            let lines = policy.lines().map(|line| {
                let line = line.replace('\\', "\\\\").replace('"', "\\\"");
                format!("seccomp_string: \"{line}\"\n")
            });
            Some(format!("mode: ONCE\n{}", lines.collect::<String>()))
        },
        has_all_plain: true,
        parse: |sources, source| {
            let parsed = (nsjail::FRONT_END.parse)(
                sources,
                source,
                &mut NoIncludes,
                &ParseOptions::new(Arch::X86_64),
            );
            meaning(parsed.parsed)
        },
    },
    Language {
        name: "lxc",
        print: conditions::lxc,
        has_all_plain: false,
        parse: |sources, source| {
            let options = ParseOptions::new(Arch::X86_64);
            let parsed = (lxc::FRONT_END.parse)(sources, source, &mut NoIncludes, &options);
            meaning(parsed.parsed)
        },
    },
    Language {
        name: "snap",
        print: conditions::snap,
        has_all_plain: false,
        parse: |sources, source| {
            let options = ParseOptions::new(Arch::X86_64);
            let parsed = (snap::FRONT_END.parse)(sources, source, &mut NoIncludes, &options);
            meaning(parsed.parsed)
        },
    },
    Language {
        name: "systemd",
        print: conditions::systemd,
        has_all_plain: false,
        parse: |sources, source| {
            let options = systemd::SystemdOptions {
                arches: vec![Arch::X86_64],
                // Its lists have one action for all calls that they lack.
                version: systemd::SystemdVersion::OLDEST,
                strict: true,
                ..systemd::SystemdOptions::new(Arch::X86_64)
            };
            meaning(systemd::parse(sources, source, &options))
        },
    },
];

fn meaning(parsed: Parsed) -> Result<Ruleset, Vec<Diagnostic>> {
    parsed.ruleset.ok_or(parsed.diagnostics)
}

impl Language {
    /// The ruleset of a text in this language.
    ///
    /// # Errors
    /// Its errors.
    pub fn parse(&self, text: &str) -> Result<Ruleset, Vec<Diagnostic>> {
        let mut sources = Sources::new();
        let source = sources.add(format!("fuzz.{}", self.name), text);
        (self.parse)(&mut sources, source)
    }
}

/// The alternatives of a condition, each a list of tests; `None` if it has another form.
fn alternatives(condition: &Predicate) -> Option<Vec<Vec<&Test>>> {
    fn conjunction(condition: &Predicate) -> Option<Vec<&Test>> {
        match condition {
            Predicate::True => Some(Vec::new()),
            Predicate::Test(test) => Some(vec![test]),
            Predicate::All(parts) => {
                let parts: Option<Vec<Vec<&Test>>> = parts.iter().map(conjunction).collect();
                Some(parts?.concat())
            }
            Predicate::False | Predicate::Not(_) | Predicate::Any(_) => None,
        }
    }
    match condition {
        Predicate::Any(parts) if !parts.is_empty() => parts.iter().map(conjunction).collect(),
        other => Some(vec![conjunction(other)?]),
    }
}

/// The only section of a ruleset for x86_64 whose rules have one call each and one common action.
fn plain_section(ruleset: &Ruleset) -> Option<&Section> {
    let [section] = ruleset.sections() else {
        return None;
    };
    let mut named: Vec<u32> = Vec::new();
    for rule in &section.rules {
        let [(first, last)] = rule.syscalls.intervals() else {
            return None;
        };
        if first != last || named.contains(first) || rule.action != section.rules[0].action {
            return None;
        }
        named.push(*first);
    }
    (section.arch == Arch::X86_64).then_some(section)
}
