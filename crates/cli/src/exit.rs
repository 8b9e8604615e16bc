//! Exit codes, the same for every subcommand; `docs/book/exit-codes.md` lists them for users.

/// Yes, or done.
pub const OK: u8 = 0;
/// The answer is no: filters differ, a call is denied, something got worse.
pub const NO: u8 = 1;
/// Wrong usage or input; standard error says where.
pub const USAGE: u8 = 2;
/// A limit was reached before there was an answer.
pub const GAVE_UP: u8 = 3;
/// This environment can't: the kernel or the permissions lack something.
pub const ENVIRONMENT: u8 = 4;
/// A bug of tamis.
pub const BUG: u8 = 101;
/// `run`, `exec`: the command was found but could not be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// `run`, `exec`: the command was not found.
pub const NOT_FOUND: u8 = 127;

/// The codes as `tamis --help` shows them.
pub const HELP: &str = "\
Exit status: 0 yes or done; 1 the answer is no (denied, different); 2 wrong usage or input; \
3 gave up at a limit; 4 this environment can't; 101 a bug of tamis. `run`, `exec`, `record`, `trace`, `sandbox` \
and `inject` \
return the code of the command they ran.";
