//! How a front end gets at the files that a policy includes, without doing I/O itself.

/// A file that was included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What diagnostics call it. Two paths to the same file should give the same name: names tell
    /// whether a file was included before.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Reads included files on behalf of a front end.
pub trait Loader {
    /// The file at `path`, which the source called `from` includes.
    ///
    /// # Errors
    /// Why it cannot be read, as a fragment that can follow a colon.
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String>;
}

/// A function from path and includer to the file is a loader.
impl<F: FnMut(&str, &str) -> Result<Loaded, String>> Loader for F {
    fn load(&mut self, path: &str, from: &str) -> Result<Loaded, String> {
        self(path, from)
    }
}

/// The loader of input that stands alone, such as standard input or an embedded policy.
#[derive(Clone, Copy, Debug)]
pub struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&mut self, _path: &str, _from: &str) -> Result<Loaded, String> {
        Err("this policy cannot include files".to_owned())
    }
}
