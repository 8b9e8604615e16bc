//! The whole question: are two subjects the same function? Diagrams first, gates where they don't do.

use tamis_abi::SeccompData;

use crate::diagram::LimitReached;
use crate::gates::{self, Scope};
use crate::space::{Equality, Limits, Space};
use crate::subject::Subject;

/// The answer to whether two subjects are the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// For every input.
    Equal(Method),
    /// Not for this one, by the evaluator and the interpreter.
    Different {
        /// The input.
        data: SeccompData,
        /// What the first returns.
        left: u32,
        /// What the second returns.
        right: u32,
        /// How it was found.
        method: Method,
    },
    /// Neither a proof nor a witness was found within the limits.
    Unknown(LimitReached),
}

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By decision diagrams.
    Diagrams {
        /// How many nodes were made.
        nodes: usize,
    },
    /// By a circuit and a SAT solver, because a limit of the diagrams was reached or they left it open.
    Gates,
}

/// Decides whether two subjects are the same function. A witness is confirmed by running both.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::{Op, Program};
/// use tamis_prover::{Answer, Limits, Subject, decide};
/// let program = |ret| Program::new(vec![Op::RetImm(ret).into()]).unwrap();
/// let (allow, deny) = (program(0x7fff_0000), program(0x0005_0001));
/// let subject = |program| Subject::Program { program, endian: Endian::Little };
/// let answer = decide(&subject(&allow), &subject(&deny), &Limits::default());
/// assert!(matches!(answer, Answer::Different { left: 0x7fff_0000, right: 0x0005_0001, .. }));
/// ```
///
/// # Panics
/// If a witness is none, which is a mistake in this crate.
pub fn decide(left: &Subject<'_>, right: &Subject<'_>, limits: &Limits) -> Answer {
    let (equality, method) = match by_diagrams(left, right, limits) {
        Ok((Equality::Unknown, _)) | Err(_) => match by_gates(left, right, limits) {
            Ok(equality) => (equality, Method::Gates),
            Err(limit) => return Answer::Unknown(limit),
        },
        Ok((equality, nodes)) => (equality, Method::Diagrams { nodes }),
    };
    match equality {
        Equality::Equal => Answer::Equal(method),
        Equality::Unknown => Answer::Unknown(LimitReached::Conflicts),
        Equality::Different(data) => {
            let (left, right) = (left.answer(&data), right.answer(&data));
            assert_ne!(left, right, "a witness tells the subjects apart: {data:x?}");
            Answer::Different {
                data,
                left,
                right,
                method,
            }
        }
    }
}

fn by_diagrams(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
) -> Result<(Equality, usize), LimitReached> {
    let mut space = Space::new(*limits);
    let (left, right) = (space.subject(left)?, space.subject(right)?);
    Ok((space.compare(left, right), space.len_nodes()))
}

fn by_gates(
    left: &Subject<'_>,
    right: &Subject<'_>,
    limits: &Limits,
) -> Result<Equality, LimitReached> {
    let found = gates::find(left, right, &Scope::default(), limits)?;
    let witness = found.stricter.or(found.looser).or(found.data_only);
    Ok(witness.map_or(Equality::Equal, Equality::Different))
}
