//! Policies that are read and compiled while a program is built.
//!
//! Both ways into a Rust program, the macro and the build script, do the same: read a policy with its
//! includes, compile it for the machine that is built for, have it proved, write the module, and remember
//! which files all that depends on. This is the one place of the crate that reads files.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use tamis_abi::Arch;
use tamis_compiler::{CompileError, Compiled, Effort, Options as CompilerOptions, compile};
use tamis_diag::{Diagnostic, Sources, render, suggest};
use tamis_policy::front_end::{self, FrontEnd};
use tamis_policy::limits::MAX_SOURCE_BYTES;
use tamis_policy::loader::{Loaded, Loader};

use crate::{Language, Source};

/// A policy in a file, and how to read it.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    path: PathBuf,
    target: Arch,
    arches: Vec<Arch>,
    front_end: Option<&'static FrontEnd>,
    thread: Option<String>,
    include_dirs: Vec<PathBuf>,
    strict: bool,
    effort: Effort,
}

/// A compiled policy and what it was made of.
#[derive(Clone, Debug)]
pub struct Embedded {
    policy: String,
    filter: Compiled,
    archs: Vec<Arch>,
    files: Vec<PathBuf>,
    warnings: Vec<Diagnostic>,
    sources: Sources,
}

/// Why a policy could not become part of a program.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmbedError {
    /// The file can't be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The text of the filter can't be written.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The text has mistakes; the diagnostics point into the sources.
    Policy(Vec<Diagnostic>, Sources),
    /// There is no program for what the policy means.
    Compile(CompileError),
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
            target,
            arches: Vec::new(),
            front_end: None,
            thread: None,
            include_dirs: Vec::new(),
            strict: false,
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
        let arch = Arch::from_name(name);
        self.arches
            .push(arch.ok_or_else(|| EmbedError::UnknownArch(name.to_owned()))?);
        Ok(self)
    }

    /// Reads the policy in the language of this name, as `--from` has it, instead of detecting the language.
    ///
    /// # Errors
    /// If no language has the name.
    pub fn from(mut self, name: &str) -> Result<PolicyFile, EmbedError> {
        let mut known = front_end::ALL.into_iter();
        let found = known.find(|front_end| front_end.name == name);
        self.front_end = Some(found.ok_or_else(|| EmbedError::UnknownLanguage(name.to_owned()))?);
        Ok(self)
    }

    /// Takes the filter of this thread from a Firecracker file, which has several.
    #[must_use]
    pub fn thread(mut self, name: impl Into<String>) -> PolicyFile {
        self.thread = Some(name.into());
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
        self.strict = true;
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
        let text = read(&self.path).map_err(|error| EmbedError::Read {
            path: self.path.clone(),
            error,
        })?;
        let name = self.path.display().to_string();
        let front_end = self.front_end.unwrap_or_else(|| language(&name, &text));
        let mut sources = Sources::new();
        let root = sources.add(name.as_str(), text);
        let mut loader = FileLoader {
            folders: &self.include_dirs,
            files: vec![self.path.clone()],
        };
        let read = (front_end.parse)(&mut sources, root, &mut loader, &self.front_end_options());
        let files = loader.files;
        let mut diagnostics = read.parsed.diagnostics;
        let Some(ruleset) = read.parsed.ruleset else {
            return Err(EmbedError::Policy(diagnostics, sources));
        };
        let mut options = CompilerOptions {
            effort: self.effort,
            ..CompilerOptions::default()
        };
        for source in read.frequencies {
            let reading = tamis_profile::read(&sources, source, self.target);
            let Some(profile) = reading.profile else {
                return Err(EmbedError::Policy(reading.diagnostics, sources));
            };
            diagnostics.extend(reading.diagnostics);
            options.profile.get_or_insert_default().merge(&profile);
        }
        diagnostics.extend(read.installation.left_out());
        let filter = compile(&ruleset, &options).map_err(EmbedError::Compile)?;
        let sections = ruleset.sections().iter();
        Ok(Embedded {
            policy: name,
            filter,
            archs: sections.map(|section| section.arch).collect(),
            files,
            warnings: diagnostics,
            sources,
        })
    }

    fn front_end_options(&self) -> front_end::Options {
        let (asked_arches, stated_arches_win) = match self.arches.as_slice() {
            [] => (vec![self.target], true),
            asked => (asked.to_vec(), false),
        };
        front_end::Options {
            asked_arches,
            stated_arches_win,
            strict: self.strict,
            thread: self.thread.clone(),
            ..front_end::Options::new(vec![self.target])
        }
    }
}

/// The language of a file: by its extension, else by its looks, else tamis's own.
fn language(name: &str, text: &str) -> &'static FrontEnd {
    let looks_right = |front_end: &&FrontEnd| (front_end.recognises)(text);
    front_end::of_file(name, text)
        .or_else(|| front_end::ALL.into_iter().find(looks_right))
        .unwrap_or(front_end::ALL[0])
}

impl Embedded {
    /// The program with its variables, proved.
    pub fn filter(&self) -> &Compiled {
        &self.filter
    }

    /// The files that it was made of: the policy and all that it includes, as paths that lead to them.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What there is to say of the policy and its tables of frequencies, short of errors, and what it wants of whoever
    /// installs the filter; each as it is shown to people, its headline first.
    pub fn warnings(&self) -> Vec<String> {
        messages(&self.warnings, &self.sources)
    }

    /// The filter as source code. `name` is for languages in which something is called by a
    /// [name](crate::name::of).
    ///
    /// # Errors
    /// If the language has no name for any machine of the policy.
    pub fn text(&self, language: &Language, name: &str) -> Result<String, EmbedError> {
        let source = Source {
            name,
            policy: &self.policy,
            archs: &self.archs,
            filter: &self.filter,
        };
        language.text(&source).ok_or_else(|| EmbedError::NoTarget {
            archs: self.archs.clone(),
        })
    }
}

impl EmbedError {
    /// What to tell the user: a message for each mistake, its headline on the first line.
    pub fn messages(&self) -> Vec<String> {
        match self {
            EmbedError::Policy(diagnostics, sources) => {
                let errors = diagnostics.iter().filter(|found| found.is_error()).cloned();
                messages(&errors.collect::<Vec<_>>(), sources)
            }
            EmbedError::Compile(error) => match error.diagnostic() {
                Some(diagnostic) => messages(&[diagnostic], &Sources::new()),
                None => vec![error.to_string()],
            },
            EmbedError::Read { path, error } => {
                vec![format!("cannot read {}: {error}", path.display())]
            }
            EmbedError::Write { path, error } => {
                vec![format!("cannot write {}: {error}", path.display())]
            }
            EmbedError::UnknownLanguage(name) => {
                let known = front_end::ALL.map(|front_end| front_end.name);
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

/// Diagnostics as texts; whoever shows them writes `error` or `warning` before the headline.
fn messages(diagnostics: &[Diagnostic], sources: &Sources) -> Vec<String> {
    let message = |diagnostic: &Diagnostic| {
        let text = render::render(std::slice::from_ref(diagnostic), sources, false);
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let headline = format!("{} [{}]", diagnostic.message, diagnostic.code.id);
        match body {
            "" => headline,
            _ => format!("{headline}\n{body}"),
        }
    };
    diagnostics.iter().map(message).collect()
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("\n\n"))
    }
}

impl std::error::Error for EmbedError {}

/// Reads included files, and remembers them.
struct FileLoader<'a> {
    folders: &'a [PathBuf],
    files: Vec<PathBuf>,
}

impl Loader for FileLoader<'_> {
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        let folder = Path::new(from).parent();
        let beside = folder.unwrap_or(Path::new("")).join(path);
        let last = Path::new(path).file_name();
        let elsewhere = self
            .folders
            .iter()
            .filter_map(|folder| Some(folder.join(last?)));
        let mut candidates = [beside.clone()].into_iter().chain(elsewhere);
        let found = candidates.find(|path| path.exists()).unwrap_or(beside);
        let found = without_dots(&found);
        let text = read(&found).map_err(|error| error.to_string())?;
        let name = found.display().to_string();
        self.files.push(found);
        Ok(Loaded { name, text })
    }
}

/// One file has one name, however often `./` stands in its path.
fn without_dots(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > MAX_SOURCE_BYTES as u64 {
        let message = format!("it has more than {MAX_SOURCE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let text = fs::read_to_string(path)?;
    // Some editors begin a text with a byte order mark; it means nothing in UTF-8.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

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
