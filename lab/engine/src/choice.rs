//! Which engine runs, and why.

use std::fmt;

/// A way to run programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The reference interpreter, which defines the meaning of programs.
    Reference,
    /// The threaded interpreter, on every machine.
    Threaded,
    /// Machine code, on x86-64 with Linux where executable memory is permitted.
    Jit,
    /// Whichever is fastest for the work.
    #[default]
    Auto,
}

/// The engine that runs, and why.
#[derive(Debug)]
pub struct Choice {
    /// The engine; never [`Engine::Auto`].
    pub engine: Engine,
    /// The reason.
    pub reason: Reason,
}

/// Why an engine runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It was requested.
    Asked,
    /// Making machine code takes longer than so few evaluations.
    FewEvaluations {
        /// Their number.
        evaluations: u64,
    },
    /// There are evaluations enough for machine code.
    ManyEvaluations,
    /// There is no machine code.
    NoMachineCode(tamis_jit::Error),
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 4] = [
        Engine::Reference,
        Engine::Threaded,
        Engine::Jit,
        Engine::Auto,
    ];

    /// Its name: lower case, one word.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Reference => "reference",
            Engine::Threaded => "threaded",
            Engine::Jit => "jit",
            Engine::Auto => "auto",
        }
    }

    /// The engine with this name.
    pub fn from_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// The number of evaluations from which on machine code pays. Its compilation takes some 30 µs, mostly for allocating
/// memory, and saves about ten nanoseconds in each evaluation.
pub(crate) const MANY_EVALUATIONS: u64 = 3000;

/// The program to run, if machine code is requested or pays, and `compile` succeeds.
///
/// # Errors
/// If machine code was requested and can't be compiled.
pub(crate) fn choose<T>(
    engine: Engine,
    evaluations: Option<u64>,
    compile: impl FnOnce() -> Result<T, tamis_jit::Error>,
) -> Result<(Choice, Option<T>), crate::Error> {
    let choice = |engine, reason| Choice { engine, reason };
    Ok(match (engine, evaluations) {
        (Engine::Reference | Engine::Threaded, _) => (choice(engine, Reason::Asked), None),
        (Engine::Jit, _) => {
            let compiled = compile().map_err(crate::Error::Jit)?;
            (choice(engine, Reason::Asked), Some(compiled))
        }
        (Engine::Auto, Some(evaluations)) if evaluations < MANY_EVALUATIONS => {
            let reason = Reason::FewEvaluations { evaluations };
            (choice(Engine::Threaded, reason), None)
        }
        (Engine::Auto, _) => match compile() {
            Ok(compiled) => {
                let choice = choice(Engine::Jit, Reason::ManyEvaluations);
                (choice, Some(compiled))
            }
            Err(error) => {
                let reason = Reason::NoMachineCode(error);
                (choice(Engine::Threaded, reason), None)
            }
        },
    })
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Choice {
    /// The engine and the reason, as a fragment: `threaded, for 10 evaluations`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.engine)?;
        match &self.reason {
            Reason::Asked => f.write_str(", as asked"),
            Reason::FewEvaluations { evaluations } => {
                write!(
                    f,
                    ", as {evaluations} evaluations don't pay for machine code"
                )
            }
            Reason::ManyEvaluations => f.write_str(", as evaluations enough pay for machine code"),
            Reason::NoMachineCode(error) => write!(f, ", as there is no machine code: {error}"),
        }
    }
}
