//! From a policy to an installed filter in a few lines, with the defaults for a program that confines itself.

use std::error;
use std::fmt;
use std::path::Path;

use tamis_abi::{Arch, host};
use tamis_bpf::Program;
use tamis_compiler::CompileOptions;
use tamis_kernel::listener::ListenerError;
use tamis_kernel::{Install, InstallError, Installed};
use tamis_policy::loader::{Loader, NoIncludes};
use tamis_rules::{BindError, Ruleset};
use tamis_session::files::{self, FileLoader};
use tamis_session::native::load_tamis;
use tamis_session::path_text::PathText;
use tamis_session::{CompiledPolicy, Input, LoadOptions, load};

/// A policy, read and checked.
///
/// ```
/// let policy = "default errno(EPERM)\nallow read, write, exit_group";
/// let filter = tamis::Policy::from_text("server.tamis", policy)?.compile()?;
/// assert!(filter.warnings().next().is_none());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy(tamis_session::Policy);

/// An error in reading, compiling or installing a policy. `Debug` shows the same text as `Display`, for a `main` that
/// returns it.
#[non_exhaustive]
pub enum Error {
    /// The policy can't be read, has errors, or can't be compiled.
    Policy(tamis_session::Error),
    /// A variable has no value, or one outside its range.
    Bind(BindError),
    /// The filter has no rules for the architecture of this program, and would deny or kill every call.
    Arch {
        /// The architecture for which this program was compiled; `None` if filters don't support it.
        native: Option<Arch>,
        /// The architectures of the filter.
        filter: Vec<Arch>,
    },
    /// The kernel rejected the filter.
    Install(InstallError),
    /// The kernel rejected a request for a listener.
    Listener(ListenerError),
}

impl Policy {
    /// Parses a policy without included files. It is in the language of tamis; with the feature `languages`, the language
    /// is detected from the extension of the name or, without a known one, from the text. A policy that states no
    /// architecture is for that of this program.
    ///
    /// # Errors
    /// If the text has errors; `Display` shows them with their places.
    pub fn from_text(name: &str, text: &str) -> Result<Policy, Error> {
        Policy::read_default(Input::new(name, text), &mut NoIncludes)
    }

    /// Reads a policy and its included files, with the same defaults.
    ///
    /// # Errors
    /// If a file can't be read or has errors.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Policy, Error> {
        let path = path.as_ref().text();
        let input = files::read(&path)?;
        Policy::read_default(input, &mut FileLoader::default())
    }

    /// Reads an input with the default options, in the languages of the features.
    fn read_default(input: Input, loader: &mut dyn Loader) -> Result<Policy, Error> {
        let options = native_options()?;
        match cfg!(feature = "languages") {
            true => Policy::read(input, &options, loader),
            false => Ok(Policy(load_tamis(input, &options, loader)?)),
        }
    }

    /// Reads an input with other options: for other architectures, strictly, in a given language, with options of
    /// that language by type or by name, with values for variables.
    ///
    /// ```
    /// use tamis::{Arch, Policy};
    /// use tamis_policy::loader::NoIncludes;
    /// use tamis_session::{Input, LoadOptions};
    ///
    /// let mut options = LoadOptions::for_program(Arch::Aarch64);
    /// options.policy.strict = true;
    /// let input = Input::new("inline", "default errno(EPERM)\nallow read, write");
    /// let filter = Policy::read(input, &options, &mut NoIncludes)?.compile()?;
    /// assert_eq!(filter.arches(), [Arch::Aarch64]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the input has errors, is a program, or an included file can't be read.
    pub fn read(
        input: Input,
        options: &LoadOptions,
        loader: &mut dyn Loader,
    ) -> Result<Policy, Error> {
        let loaded = load(input, options, loader)?;
        options.bindings.check([&loaded].into_iter())?;
        Ok(Policy(loaded.into_policy("give the policy instead")?))
    }

    /// The rules of the policy.
    pub fn ruleset(&self) -> &Ruleset {
        &self.0.ruleset
    }

    /// Compiles the policy and proves the program for every call and all values of its variables.
    ///
    /// # Errors
    /// If the policy can't be compiled.
    pub fn compile(self) -> Result<CompiledPolicy, Error> {
        self.compile_for(&CompileOptions::default())
    }

    /// Compiles the policy with a profile, an objective or an effort.
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

/// Installs a filter without variables on the calling thread, with `no_new_privs`. Threads that it starts later inherit
/// the filter, which can't be removed.
///
/// A filter with variables is bound first, and its program installed by [`install_program`].
///
/// # Errors
/// If the filter has no rules for the architecture of this program or has a variable, or if the kernel rejects it.
pub fn install(filter: &CompiledPolicy) -> Result<Installed, Error> {
    install_with(filter, &Install::default())
}

/// The same with options: on all threads, with a listener, with audit records, without `no_new_privs`.
///
/// ```no_run
/// # use tamis::{Install, Policy, install_with};
/// # let filter = Policy::from_text("inline", "default allow\nerrno(EPERM) ptrace")?.compile()?;
/// install_with(&filter, &Install::default().all_threads().log())?;
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// # Errors
/// As [`install`]; the kernel also rejects a filter for all threads if another thread has a filter that this one lacks.
pub fn install_with(filter: &CompiledPolicy, options: &Install) -> Result<Installed, Error> {
    let native = host::arch();
    if !native.is_some_and(|arch| filter.arches().contains(&arch)) {
        return Err(Error::Arch {
            native,
            filter: filter.arches().to_vec(),
        });
    }
    install_program(filter.program()?, options)
}

/// Installs a program, such as one with values for variables, with options. The caller answers for its architectures.
///
/// # Errors
/// If the kernel rejects it.
pub fn install_program(program: &Program, options: &Install) -> Result<Installed, Error> {
    Ok(tamis_kernel::install(program, options)?)
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
            Error::Listener(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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

impl From<ListenerError> for Error {
    fn from(error: ListenerError) -> Error {
        Error::Listener(error)
    }
}
