//! Policies that are read and compiled while a program is built.
//!
//! Both ways into a Rust program, the macro and the build script, do the same: read a policy with its
//! includes, compile it for the machine that is built for, have it proved, write the module, and remember
//! which files all that depends on. Reading and compiling is `tamis-session`'s work.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tamis_abi::Arch;
use tamis_compiler::{CompileOptions, Compiled, Effort};
use tamis_diag::suggest;
use tamis_policy::front_end::ParseOptions;
use tamis_session::files::{self, FileLoader};
use tamis_session::{Assignment, CompiledPolicy, Error, InputKind, LoadOptions, load};

use crate::{Language, Source};

/// A policy in a file, and how to read it.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    path: PathBuf,
    load: LoadOptions,
    include_dirs: Vec<PathBuf>,
    effort: Effort,
}

/// A compiled policy and what it was made of.
#[derive(Clone, Debug)]
pub struct Embedded {
    policy: CompiledPolicy,
    files: Vec<PathBuf>,
}

/// Why a policy could not become part of a program.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmbedError {
    /// The file of the policy can't be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: files::ReadError,
    },
    /// The policy has mistakes, or there is no program for what it means.
    Policy(Error),
    /// The text of the filter can't be written.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No policy language has this name.
    UnknownLanguage(String),
    /// No architecture has this name.
    UnknownArch(String),
    /// No effort has this name.
    UnknownEffort(String),
    /// The language of the program has no name for any machine of the policy.
    NoTarget {
        /// The architectures of the policy.
        archs: Vec<Arch>,
    },
}

impl PolicyFile {
    /// A policy for programs of this architecture. What a policy says of architectures itself counts more.
    pub fn new(path: impl Into<PathBuf>, target: Arch) -> PolicyFile {
        PolicyFile {
            path: path.into(),
            load: LoadOptions::for_program(target),
            include_dirs: Vec::new(),
            effort: Effort::default(),
        }
    }

    /// Where the policy is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the filter for this architecture whatever the policy says; may be repeated.
    ///
    /// # Errors
    /// If no architecture has the name.
    pub fn arch(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let arch = Arch::from_name(name).ok_or_else(|| EmbedError::UnknownArch(name.to_owned()))?;
        let policy = &mut self.load.policy;
        if policy.stated_arches_win {
            policy.stated_arches_win = false;
            policy.asked_arches.clear();
        }
        policy.asked_arches.push(arch);
        Ok(self)
    }

    /// Reads the policy in the language of this name, as `--from` has it, instead of detecting the language.
    ///
    /// # Errors
    /// If no language has the name.
    pub fn from(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let kind = InputKind::from_name(name).filter(|kind| !kind.is_program());
        self.load.kind = Some(kind.ok_or_else(|| EmbedError::UnknownLanguage(name.to_owned()))?);
        Ok(self)
    }

    /// Takes the filter of this thread from a Firecracker file, which has several.
    #[must_use]
    pub fn thread(self, name: impl Into<String>) -> PolicyFile {
        self.option(Assignment::new("thread", name))
    }

    /// Gives an option of the policy's language by name, as `-O` does; `tamis tables options` lists them. A path is
    /// relative to the package. [`compile`](Self::compile) fails if the language lacks the option.
    ///
    /// ```
    /// use tamis_embed::{Assignment, PolicyFile, build};
    /// let policy = PolicyFile::new("server.policy", build::target()).option(Assignment::parse("dialect=c"));
    /// ```
    #[must_use]
    pub fn option(mut self, option: Assignment) -> PolicyFile {
        self.load.named.list.push(option);
        self
    }

    /// Sets options by type. Those of other languages than the policy's have no effect.
    ///
    /// ```
    /// use tamis_embed::{PolicyFile, build};
    /// let policy = PolicyFile::new("server.policy", build::target());
    /// let policy = policy.with_options(|options| options.minijail.denylist = true);
    /// ```
    #[must_use]
    pub fn with_options(mut self, set: impl FnOnce(&mut ParseOptions)) -> PolicyFile {
        set(&mut self.load.policy);
        self
    }

    /// Looks here, by their last name, for included files that are not where the policy says; may be
    /// repeated.
    #[must_use]
    pub fn include_dir(mut self, folder: impl Into<PathBuf>) -> PolicyFile {
        self.include_dirs.push(folder.into());
        self
    }

    /// Makes errors of warnings that change what the filter does.
    #[must_use]
    pub fn strict(mut self) -> PolicyFile {
        self.load.policy.strict = true;
        self
    }

    /// Spends this much work on making the filter fast, as `--effort` has it: `full`, which is the default, or
    /// `quick`.
    ///
    /// # Errors
    /// If no effort has the name.
    pub fn effort(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let effort = Effort::from_name(name);
        self.effort = effort.ok_or_else(|| EmbedError::UnknownEffort(name.to_owned()))?;
        Ok(self)
    }

    /// Reads the policy, compiles it, and has the program proved for all values of its variables.
    ///
    /// # Errors
    /// If a file can't be read, the text has mistakes, or there is no program for what it means.
    pub fn compile(&self) -> Result<Embedded, EmbedError> {
        let input = files::read_file(&self.path).map_err(|error| EmbedError::Read {
            path: self.path.clone(),
            error,
        })?;
        let mut loader = FileLoader::new(&self.include_dirs);
        let loaded = load(input, &self.load, &mut loader).map_err(EmbedError::Policy)?;
        let options = CompileOptions {
            effort: self.effort,
            ..CompileOptions::default()
        };
        let policy = loaded
            .into_policy("name a policy: only policies become part of programs")
            .and_then(|policy| CompiledPolicy::of(policy, &options))
            .map_err(EmbedError::Policy)?;
        let mut files = vec![self.path.clone()];
        files.append(&mut loader.files);
        Ok(Embedded { policy, files })
    }
}

impl Embedded {
    /// The program with its variables, proved.
    pub fn filter(&self) -> &Compiled {
        self.policy.compiled()
    }

    /// The files that it was made of: the policy and all that it includes, as paths that lead to them.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What there is to say of the policy and its tables of frequencies, short of errors, and what it wants of whoever
    /// installs the filter; each as it is shown to people, its headline first.
    pub fn warnings(&self) -> Vec<String> {
        self.policy.warnings().map(|own| own.message()).collect()
    }

    /// The filter as source code. `name` is for languages in which something is called by a
    /// [name](crate::name::of).
    ///
    /// # Errors
    /// If the language has no name for any machine of the policy.
    pub fn text(&self, language: &Language, name: &str) -> Result<String, EmbedError> {
        let source = Source {
            name,
            policy: self.policy.name(),
            archs: self.policy.arches(),
            filter: self.policy.compiled(),
        };
        language.text(&source).ok_or_else(|| EmbedError::NoTarget {
            archs: self.policy.arches().to_vec(),
        })
    }
}

impl EmbedError {
    /// What to tell the user: a message for each mistake, its headline on the first line.
    pub fn messages(&self) -> Vec<String> {
        match self {
            EmbedError::Policy(error) => error.messages(),
            EmbedError::Read { path, error } => {
                vec![format!("cannot read {}: {error}", path.display())]
            }
            EmbedError::Write { path, error } => {
                vec![format!("cannot write {}: {error}", path.display())]
            }
            EmbedError::UnknownLanguage(name) => {
                let policies = InputKind::all().filter(|kind| !kind.is_program());
                let known: Vec<&str> = policies.map(InputKind::name).collect();
                vec![unknown("policy language", name, &known)]
            }
            EmbedError::UnknownArch(name) => {
                let known: Vec<&str> = Arch::all().map(Arch::name).collect();
                vec![unknown("architecture", name, &known)]
            }
            EmbedError::UnknownEffort(name) => {
                vec![unknown("effort", name, &Effort::ALL.map(Effort::name))]
            }
            EmbedError::NoTarget { archs } => {
                let names: Vec<&str> = archs.iter().map(|arch| arch.name()).collect();
                vec![format!(
                    "the language supports no architecture of the policy: {}",
                    names.join(", ")
                )]
            }
        }
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let help = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    format!("there is no {what} `{name}`: {help}")
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("\n\n"))
    }
}

impl std::error::Error for EmbedError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_filters_are_other_programs_and_unknown_efforts_are_mistakes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
        let policy = PolicyFile::new(folder.join("container-default.tamis"), Arch::X86_64);
        let [full, quick] = ["full", "quick"].map(|effort| {
            let policy = policy.clone().effort(effort).unwrap();
            let embedded = policy.compile().unwrap();
            embedded.filter().template().unbound().clone()
        });
        let default = policy.compile().unwrap();
        assert_eq!(default.filter().template().unbound(), &full);
        assert_ne!(full, quick);
        let mistake = policy.effort("quik").unwrap_err();
        assert!(mistake.to_string().contains("did you mean `quick`"));
    }
}
