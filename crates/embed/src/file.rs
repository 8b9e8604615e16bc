//! Policies that are read and compiled during the build of a program.
//!
//! The macro and the build script do the same: read a policy with its includes, compile it for the target machine,
//! prove the result, write the module, and record the files it depends on. `tamis-session` reads and compiles.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tamis_abi::Arch;
use tamis_compiler::{CompileOptions, Compiled, Effort};
use tamis_diag::suggest;
use tamis_policy::front_end::ParseOptions;
use tamis_session::files::{self, FileLoader};
use tamis_session::{Assignment, CompiledPolicy, Error, InputKind, LoadOptions, load};

use crate::{Family, Language};

/// A policy in a file, with the options for reading it.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    path: PathBuf,
    load: LoadOptions,
    include_dirs: Vec<PathBuf>,
    effort: Effort,
}

/// A compiled policy, with its files and warnings.
#[derive(Clone, Debug)]
pub struct Embedded {
    policy: CompiledPolicy,
    files: Vec<PathBuf>,
}

/// An error that prevents embedding a policy.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmbedError {
    /// The file of the policy can't be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: files::ReadError,
    },
    /// The policy has errors, or can't be compiled.
    Policy(Error),
    /// The text of the filter can't be written.
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// No policy language has this name.
    UnknownLanguage(String),
    /// No architecture has this name.
    UnknownArch(String),
    /// No effort has this name.
    UnknownEffort(String),
    /// The target language supports none of the policy's architectures.
    NoTarget {
        /// The architectures of the policy.
        archs: Vec<Arch>,
    },
}

impl PolicyFile {
    /// A policy for programs of this architecture. Architectures named in the policy take precedence.
    pub fn new(path: impl Into<PathBuf>, target: Arch) -> PolicyFile {
        PolicyFile {
            path: path.into(),
            load: LoadOptions::for_program(target),
            include_dirs: Vec::new(),
            effort: Effort::default(),
        }
    }

    /// The path of the policy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles for this architecture, whatever the policy names; may be repeated.
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

    /// Reads the policy in this language instead of detecting it; the names are those of `--from`.
    ///
    /// # Errors
    /// If no language has the name.
    pub fn from(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let kind = InputKind::from_name(name).filter(|kind| !kind.is_program());
        self.load.kind = Some(kind.ok_or_else(|| EmbedError::UnknownLanguage(name.to_owned()))?);
        Ok(self)
    }

    /// Selects this thread's filter of a Firecracker file, which has several.
    #[must_use]
    pub fn thread(self, name: impl Into<String>) -> PolicyFile {
        self.option(Assignment::new("thread", name))
    }

    /// Sets an option of the policy's language by name, as `-O` does; `tamis tables options` lists them. A path is
    /// relative to the package. [`compile`](Self::compile) fails if the language does not have the option.
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

    /// Sets options by type. Options of other languages have no effect.
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

    /// Searches this directory for included files, by their last path component, if they are not where the policy
    /// says; may be repeated.
    #[must_use]
    pub fn include_dir(mut self, folder: impl Into<PathBuf>) -> PolicyFile {
        self.include_dirs.push(folder.into());
        self
    }

    /// Treats warnings that affect the filter as errors.
    #[must_use]
    pub fn strict(mut self) -> PolicyFile {
        self.load.policy.strict = true;
        self
    }

    /// Sets the effort spent on making the filter fast; the names are those of `--effort`: `full`, the default, or
    /// `quick`.
    ///
    /// # Errors
    /// If no effort has the name.
    pub fn effort(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let effort = Effort::from_name(name);
        self.effort = effort.ok_or_else(|| EmbedError::UnknownEffort(name.to_owned()))?;
        Ok(self)
    }

    /// Reads and compiles the policy, and proves the program for all values of its variables.
    ///
    /// # Errors
    /// If a file can't be read, the policy has errors, or it can't be compiled.
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
            .and_then(|policy| CompiledPolicy::from_policy(policy, &options))
            .map_err(EmbedError::Policy)?;
        let mut files = vec![self.path.clone()];
        files.append(&mut loader.files);
        Ok(Embedded { policy, files })
    }
}

impl Embedded {
    /// The proved program with its variables.
    pub fn filter(&self) -> &Compiled {
        self.policy.compiled()
    }

    /// The files it was compiled from: the policy and all included files, as paths for opening them.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The warnings and notes about the policy and its profiles, and the requirements for installing the filter, each
    /// as displayed to users with the headline first.
    pub fn warnings(&self) -> Vec<String> {
        self.policy.warnings().map(|own| own.message()).collect()
    }

    /// The filter as source code. `name` is for languages in which an item has the [name](crate::name::identifier).
    ///
    /// # Errors
    /// If the language supports none of the policy's architectures.
    pub fn text(&self, language: &Language, name: &str) -> Result<String, EmbedError> {
        let policy = &self.policy;
        let family = Family::single(policy.name(), policy.arches(), policy.compiled());
        let text = language.text(&family, name);
        text.ok_or_else(|| EmbedError::NoTarget {
            archs: self.policy.arches().to_vec(),
        })
    }
}

impl EmbedError {
    /// The messages for the user: one for each error, with its headline on the first line.
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policy/policies");
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
