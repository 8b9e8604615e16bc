//! Conditions on the arguments of a system call.

use tamis_abi::ArgIndex;

/// One condition on an argument: `argument comparison value`, unsigned, `struct scmp_arg_cmp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// The argument.
    pub arg: ArgIndex,
    /// The operator.
    pub comparison: Comparison,
    /// The constant; for masks, the required value of the masked bits.
    pub value: u64,
}

/// A comparison, `SCMP_CMP_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `>=`
    Ge,
    /// `>`
    Gt,
    /// `argument & mask == value & mask`
    Masked {
        /// The bits that are compared.
        mask: u64,
    },
}

impl Condition {
    /// The bits that are compared.
    pub(crate) const fn mask(&self) -> u64 {
        match self.comparison {
            Comparison::Masked { mask } => mask,
            _ => u64::MAX,
        }
    }

    /// Whether it is compiled as its negation: `!=` as `==`, `<` as `>=`, `<=` as `>`.
    pub(crate) const fn is_negative(&self) -> bool {
        matches!(
            self.comparison,
            Comparison::Ne | Comparison::Lt | Comparison::Le
        )
    }
}

/// Conditions that must all hold, at most one on each argument: those of one libseccomp rule.
///
/// ```
/// use tamis_abi::ArgIndex;
/// use tamis_scmp::{Comparison, Condition, Conditions};
/// let condition = |value| Condition {
///     arg: ArgIndex::ALL[0],
///     comparison: Comparison::Gt,
///     value,
/// };
/// assert!(Conditions::new(&[condition(1)]).is_ok());
/// assert!(Conditions::new(&[condition(1), condition(2)]).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conditions([Option<Condition>; 6]);

/// Two conditions test this argument: libseccomp returns `EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedArgument(pub ArgIndex);

impl Conditions {
    /// No condition.
    pub const NONE: Conditions = Conditions([None; 6]);

    /// These conditions, in any order.
    ///
    /// # Errors
    /// If two test the same argument.
    pub fn new(conditions: &[Condition]) -> Result<Conditions, RepeatedArgument> {
        let mut all = Conditions::NONE;
        for condition in conditions {
            let slot = &mut all.0[condition.arg.index()];
            if slot.replace(*condition).is_some() {
                return Err(RepeatedArgument(condition.arg));
            }
        }
        Ok(all)
    }

    /// These conditions with one added, which replaces one on the same argument.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Conditions {
        self.0[condition.arg.index()] = Some(condition);
        self
    }

    /// The conditions of a rule for a call made through `socketcall` or `ipc`, whose argument 0 is the selector. As
    /// in libseccomp, the other conditions stay, although they now apply to a pointer or another argument.
    #[must_use]
    pub fn with_selector(self, selector: u32) -> Conditions {
        self.with(Condition {
            arg: ArgIndex::ALL[0],
            comparison: Comparison::Eq,
            value: u64::from(selector),
        })
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The conditions, by ascending argument.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Condition> {
        self.0.iter().flatten()
    }
}
