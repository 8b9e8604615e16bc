//! Exit codes, the same for every subcommand; `docs/book/exit-codes.md` lists them for users.

/// Yes, or done.
pub(crate) const OK: u8 = 0;
/// The answer is no: filters differ, a call is denied, something got worse.
pub(crate) const NO: u8 = 1;
/// Wrong usage or input; standard error says where.
pub(crate) const USAGE: u8 = 2;
/// A limit was reached before there was an answer.
pub(crate) const GAVE_UP: u8 = 3;
/// This environment can't: the kernel or the permissions lack something.
pub(crate) const ENVIRONMENT: u8 = 4;
/// A bug of tamis.
pub(crate) const BUG: u8 = 101;
/// `run`, `exec`: the command was found but could not be executed.
pub(crate) const CANNOT_EXECUTE: u8 = 126;
/// `run`, `exec`: the command was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// The codes as `tamis --help` shows them.
pub(crate) const HELP: &str = "\
Exit status: 0 yes or done; 1 the answer is no (denied, different); 2 wrong usage or input; \
3 gave up at a limit; 4 this environment can't; 101 a bug of tamis. `run`, `exec`, `record`, `trace`, `sandbox` \
and `inject` \
return the code of the command they ran.";
