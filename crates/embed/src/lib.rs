//! Compiled filters as source code of the programs that install them.
//!
//! A program with an embedded filter needs neither tamis nor a compiler at run time: it copies the instructions,
//! stores the values of the policy's variables in their places, and installs the result. A [`Family`] is the input of
//! a text, and each language is one file that writes it and one entry of [`ALL`]; to add a language, copy the file of
//! the most similar one. Filters are proved before; this crate does not interpret their instructions.
#![forbid(unsafe_code)]

pub mod annotation;
pub mod build;
mod c;
pub mod digest;
pub mod family;
mod file;
mod go;
pub mod name;
mod rust;
mod template;
mod text;

use tamis_abi::{Arch, syscall};

pub use family::Family;
pub use file::{EmbedError, Embedded, PolicyFile};
pub use rust::LANGUAGE as RUST;
pub use tamis_policy::front_end::ParseOptions;
pub use tamis_session::Assignment;

/// A language in which filters can be written.
#[derive(Debug)]
pub struct Language {
    /// The name for `--emit`.
    pub name: &'static str,
    /// The description for the help.
    pub about: &'static str,
    /// The item named by `--name`; `None` if there is none.
    pub named: Option<&'static str>,
    /// Identifiers that are not available, because they are reserved or used by the text.
    pub reserved: &'static [&'static str],
    /// The condition that the target machine has the architecture, in the language's syntax; `None` if the language
    /// does not support it.
    pub target: fn(Arch) -> Option<&'static str>,
    write: fn(&Family, &str, &[Target]) -> String,
}

/// The languages, in the order of the help.
pub static ALL: [&Language; 3] = [&c::LANGUAGE, &rust::LANGUAGE, &go::LANGUAGE];

/// A machine for which the text can be built.
struct Target {
    /// The condition for it, in the language's syntax.
    condition: &'static str,
    /// The number of seccomp(2).
    seccomp_nr: u32,
}

impl Language {
    /// The text of a family; `None` if the language supports none of its architectures. `name` is an
    /// [identifier](name::identifier) of the language.
    pub fn text(&self, family: &Family, name: &str) -> Option<String> {
        let targets = self.targets(&family.archs);
        (!targets.is_empty()).then(|| (self.write)(family, name, &targets))
    }

    /// The targets for these architectures that the language supports.
    fn targets(&self, archs: &[Arch]) -> Vec<Target> {
        let targets = archs.iter().filter_map(|arch| {
            Some(Target {
                condition: (self.target)(*arch)?,
                seccomp_nr: syscall::number(*arch, "seccomp")?.0,
            })
        });
        targets.collect()
    }
}
