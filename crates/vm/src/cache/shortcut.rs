//! The shortest way to most plans: one word for each of the first numbers of one architecture.

use super::{Plan, Table, key};

/// The plans of the first numbers of the first architecture of a [`Table`], if they are answers or residuals. A caller asks it before the
/// table.
///
/// ```
/// use tamis_abi::{Action, Arch, Endian};
/// use tamis_bpf::{Op, Program, Stack, Test};
/// use tamis_vm::cache::{Plan, Shortcut, Table};
/// let (ret, x86_64) = (Action::ALLOW.ret(), Arch::X86_64.audit());
/// let ops = [Op::LoadData(4), Op::branch(Test::Eq, x86_64, 1, 0), Op::RetImm(0), Op::RetImm(ret)];
/// let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
/// let shortcut = Table::new(&Stack::from(program)).shortcut();
/// assert_eq!(shortcut.plan(x86_64, 1), Some(Plan::Answer(ret)));
/// assert_eq!(shortcut.plan(x86_64, u32::MAX), None, "the table knows");
/// assert_eq!(Shortcut::none().plan(x86_64, 1), None);
/// ```
#[derive(Clone, Debug)]
pub struct Shortcut {
    /// The [`key`] of the architecture's number 0.
    first_key: u64,
    words: Box<[u32; Table::DENSE as usize]>,
}

/// The upper half of words that aren't answers: an action that no kernel knows, so hardly an answer.
const NO_ANSWER: u32 = 0x5555;

/// The word of a plan that the table has, not the shortcut.
const ASK: u32 = NO_ANSWER << 16 | 0xffff;

impl Shortcut {
    /// One that has no plans.
    pub fn none() -> Shortcut {
        Shortcut {
            first_key: u64::MAX,
            words: Box::new([ASK; Table::DENSE as usize]),
        }
    }

    pub(super) fn new(audit: u32, plans: &[Plan; Table::DENSE as usize]) -> Shortcut {
        Shortcut {
            first_key: key(audit, 0),
            words: Box::new(plans.map(word)),
        }
    }

    /// The plan for calls of this architecture with this number, if it is here.
    #[inline]
    pub fn plan(&self, audit: u32, nr: u32) -> Option<Plan> {
        // No bit of this is set but those of a number of the array, or it is none of these calls.
        let index = usize::try_from(key(audit, nr) ^ self.first_key).ok()?;
        let word = *self.words.get(index)?;
        match word >> 16 {
            NO_ANSWER if word == ASK => None,
            NO_ANSWER => Some(Plan::Residual(word & 0xffff)),
            _ => Some(Plan::Answer(word)),
        }
    }
}

fn word(plan: Plan) -> u32 {
    match plan {
        Plan::Answer(ret) if ret >> 16 != NO_ANSWER => ret,
        Plan::Residual(residual) if residual < 0xffff => NO_ANSWER << 16 | residual,
        _ => ASK,
    }
}
