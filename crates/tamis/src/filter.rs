//! From a policy to an installed filter in a few lines, with the defaults of a program that confines itself.

use std::error;
use std::fmt;
use std::path::Path;

use tamis_abi::{Arch, host};
use tamis_compiler::CompileOptions;
use tamis_kernel::{Install, InstallError, Installed};
use tamis_policy::loader::{Loader, NoIncludes};
use tamis_rules::{BindError, Ruleset};
use tamis_session::files::{self, FileLoader};
use tamis_session::path_text::PathText;
use tamis_session::{CompiledPolicy, Input, LoadOptions, load};

/// A policy in any language, read and checked.
///
/// ```
/// let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
///     {"names": ["read", "write", "exit_group"], "action": "SCMP_ACT_ALLOW"}]}"#;
/// let filter = tamis::Policy::from_text("profile.json", profile)?.compile()?;
/// assert!(filter.warnings().next().is_none());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy(tamis_session::Policy);

/// Why there is no policy, no filter, or none that is installed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The policy can't be read, has mistakes, or there is no program for what it means.
    Policy(tamis_session::Error),
    /// A variable has no value, or one that it was not declared for.
    Bind(BindError),
    /// The filter has no rules for the architecture of this program, and would deny or kill whatever it does.
    Arch {
        /// The architecture that this program was compiled for; `None` if filters can't tell it.
        native: Option<Arch>,
        /// Those that the filter has rules for.
        filter: Vec<Arch>,
    },
    /// The kernel didn't take the filter.
    Install(InstallError),
}

impl Policy {
    /// Reads the text of a policy that includes no files. The extension of the name tells the language or, where
    /// it says nothing, the content. A policy that names no architectures is for the one that this program was
    /// compiled for.
    ///
    /// # Errors
    /// If the text has mistakes. They are shown with their places by `Display`.
    pub fn from_text(name: &str, text: &str) -> Result<Policy, Error> {
        Policy::read(Input::new(name, text), &native_options()?, &mut NoIncludes)
    }

    /// Reads a file in the same way, with the files that it includes.
    ///
    /// # Errors
    /// If a file can't be read, or has mistakes.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Policy, Error> {
        let path = path.as_ref().text();
        let input = files::read(&path)?;
        Policy::read(input, &native_options()?, &mut FileLoader::default())
    }

    /// Reads an input with other options: for other architectures, strictly, in a given language, with options of
    /// that language by type or by name, with values for variables.
    ///
    /// ```
    /// use tamis::session::{Assignment, Input, LoadOptions};
    /// use tamis::{Arch, Policy, policy::loader::NoIncludes};
    ///
    /// let mut options = LoadOptions::for_program(Arch::Aarch64);
    /// options.policy.strict = true;
    /// let input = Input::new("inline", "default errno(EPERM)\nallow read, write");
    /// let filter = Policy::read(input, &options, &mut NoIncludes)?.compile()?;
    /// assert_eq!(filter.arches(), [Arch::Aarch64]);
    ///
    /// options.policy.minijail.denylist = true;
    /// options.named.list.push(Assignment::parse("use-kill-process"));
    /// let input = Input::new("inline.policy", "@denylist\nptrace: return EPERM");
    /// assert!(Policy::read(input, &options, &mut NoIncludes).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the input has mistakes, is a program, or something that it includes can't be had.
    pub fn read(
        input: Input,
        options: &LoadOptions,
        loader: &mut dyn Loader,
    ) -> Result<Policy, Error> {
        let loaded = load(input, options, loader)?;
        options.bindings.check([&loaded].into_iter())?;
        Ok(Policy(loaded.into_policy("give the policy instead")?))
    }

    /// What it means.
    pub fn ruleset(&self) -> &Ruleset {
        &self.0.ruleset
    }

    /// Compiles it, and has the program proved for every call and all values of its variables.
    ///
    /// # Errors
    /// If there is no program for what it means.
    pub fn compile(self) -> Result<CompiledPolicy, Error> {
        self.compile_for(&CompileOptions::default())
    }

    /// The same for the calls that a profile expects, with another objective or effort.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_for(self, options: &CompileOptions) -> Result<CompiledPolicy, Error> {
        Ok(CompiledPolicy::from_policy(self.0, options)?)
    }
}

/// The options of [`Policy::from_text`].
fn native_options() -> Result<LoadOptions, Error> {
    let native = host::arch().ok_or(Error::Arch {
        native: None,
        filter: Vec::new(),
    })?;
    Ok(LoadOptions::for_program(native))
}

/// Installs a filter without variables on the calling thread, with `no_new_privs`; threads that it starts from then on
/// have it too. It can't be removed.
///
/// A filter with variables is bound first, and its program installed by [`kernel::install`](fn@tamis_kernel::install).
///
/// # Errors
/// If the filter has no rules for the architecture of this program or has a variable, and if the kernel refuses.
pub fn install(filter: &CompiledPolicy) -> Result<Installed, Error> {
    let native = host::arch();
    if !native.is_some_and(|arch| filter.arches().contains(&arch)) {
        return Err(Error::Arch {
            native,
            filter: filter.arches().to_vec(),
        });
    }
    let program = filter.program()?;
    Ok(tamis_kernel::install(program, &Install::default())?)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Policy(error) => error.fmt(f),
            Error::Bind(error) => error.fmt(f),
            Error::Arch {
                native: Some(native),
                filter,
            } => {
                let names: Vec<&str> = filter.iter().map(|arch| arch.name()).collect();
                let names = names.join(", ");
                write!(
                    f,
                    "the filter is for {names}, and this program is for {native}"
                )
            }
            Error::Arch { native: None, .. } => {
                f.write_str("no filter can tell the architecture of this program")
            }
            Error::Install(error) => error.fmt(f),
        }
    }
}

impl error::Error for Error {}

impl From<tamis_session::Error> for Error {
    fn from(error: tamis_session::Error) -> Error {
        Error::Policy(error)
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Error {
        Error::Bind(error)
    }
}

impl From<InstallError> for Error {
    fn from(error: InstallError) -> Error {
        Error::Install(error)
    }
}
