//! Access to the files that a policy includes; front ends do no I/O themselves.

/// An included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The name in diagnostics. Two paths to the same file should give the same name: names determine whether a
    /// file was included before.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Reads included files on behalf of a front end.
pub trait Loader {
    /// Begins a policy: the source with this name, a path or `<stdin>`. Its place may restrict its included files.
    fn begin(&mut self, _root: &str) {}

    /// The file at `path`, included by the source named `from`.
    ///
    /// # Errors
    /// The reason why it cannot be read, as a fragment that can follow a colon.
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String>;

    /// Loads a file that the caller named as the value of an option, not the policy.
    ///
    /// # Errors
    /// The reason why it cannot be read, as a fragment that can follow a colon.
    fn load_given(&mut self, path: &str) -> Result<Loaded, String> {
        self.load(path, "")
    }
}

/// A function of path and including file is a loader.
impl<F: FnMut(&str, &str) -> Result<Loaded, String>> Loader for F {
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        self(path, from)
    }
}

/// The loader for input without includes, such as standard input or an embedded policy.
#[derive(Clone, Copy, Debug)]
pub struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&mut self, _path: &str, _from: &str) -> Result<Loaded, String> {
        Err("this policy cannot include files".to_owned())
    }
}
