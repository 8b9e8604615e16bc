//! Run-time variables: constants of a policy that are known only when its filter is installed.
//!
//! A policy that is compiled in advance can't contain the number of a file descriptor that the program has just
//! opened, or a process ID. A variable represents it: rules compare operands with it, and the filter gets its value
//! when it is *bound*. The filter is compiled and proved before that, for all values.

use std::fmt;
use std::sync::Arc;

use tamis_abi::{SeccompData, VariableIndex};

use crate::input::Values;
use crate::predicate::{Operand, OperandSource, Part, Predicate, Test};
use crate::ruleset::{Rule, Ruleset};
use crate::set::IntervalSet;

/// A run-time variable of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// The name as declared; elements of a set have the same name and differ in [`element`](Self::element).
    pub name: Arc<str>,
    /// Its index in the set of this name; `None` for a single variable.
    pub element: Option<u32>,
    /// Its width.
    pub width: VariableWidth,
    /// The smallest and largest value to which it may be bound, both included and within the width.
    pub range: (u64, u64),
}

/// The width of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableWidth {
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
}

/// The reason why values can't be bound to a ruleset's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindError {
    /// There are more or fewer values than variables.
    Count {
        /// The count of variables.
        variables: usize,
        /// The count of given values.
        values: usize,
    },
    /// A value is outside the declared range of its variable.
    OutOfRange {
        /// The variable.
        variable: Variable,
        /// The value.
        value: u64,
    },
    /// There is no variable of this name.
    Unknown {
        /// The name.
        name: String,
        /// The most similar name of a variable.
        nearest: Option<String>,
    },
    /// A variable has no value yet.
    Unset {
        /// The variable.
        variable: Variable,
    },
    /// The count of given values differs from that of the name.
    Elements {
        /// The name.
        name: String,
        /// The count of values of the name.
        wanted: usize,
        /// The count of given values.
        given: usize,
    },
}

impl VariableWidth {
    /// The largest value.
    pub const fn max(self) -> u64 {
        match self {
            VariableWidth::U32 => u32::MAX as u64,
            VariableWidth::U64 => u64::MAX,
        }
    }

    /// The name in a policy: `u32`, `u64`.
    pub const fn name(self) -> &'static str {
        match self {
            VariableWidth::U32 => "u32",
            VariableWidth::U64 => "u64",
        }
    }

    /// The width with a name.
    pub fn from_name(name: &str) -> Option<VariableWidth> {
        [VariableWidth::U32, VariableWidth::U64]
            .into_iter()
            .find(|width| width.name() == name)
    }
}

impl Variable {
    /// The name in messages: `fd`, `fds[2]`.
    pub fn title(&self) -> String {
        match self.element {
            None => self.name.to_string(),
            Some(element) => format!("{}[{element}]", self.name),
        }
    }

    /// Whether it may be declared after these: its name is a word, and is new or that of a set of which it is the
    /// next element.
    pub(crate) fn can_follow(&self, earlier: &[Variable]) -> bool {
        let is_inner = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let is_word = !self.name.starts_with(|c: char| c.is_ascii_digit())
            && !self.name.is_empty()
            && self.name.chars().all(is_inner);
        let mut namesakes = earlier.iter().filter(|other| other.name == self.name);
        let continues = match self.element {
            None => namesakes.next().is_none(),
            Some(element) => {
                let is_like = |other: &Variable| {
                    other.element.is_some()
                        && (other.width, other.range) == (self.width, self.range)
                };
                namesakes.clone().count() == element as usize && namesakes.all(is_like)
            }
        };
        is_word && continues
    }

    /// The operand that reads it.
    pub const fn operand(&self, index: VariableIndex) -> Operand {
        Operand {
            source: OperandSource::Variable(index),
            part: match self.width {
                VariableWidth::U32 => Part::Low,
                VariableWidth::U64 => Part::Full,
            },
        }
    }

    /// Whether it may have the value.
    pub const fn admits(&self, value: u64) -> bool {
        self.range.0 <= value && value <= self.range.1
    }
}

impl Ruleset {
    /// The ruleset for these values of its variables, without variables.
    ///
    /// # Errors
    /// If the counts of values and variables differ, or a value is out of range.
    pub fn bind(&self, values: &[u64]) -> Result<Ruleset, BindError> {
        check_values(self.variables(), values)?;
        let values = Values::new(values);
        let mut bound = self.clone().with_variables(Vec::new());
        for rule in bound
            .sections_mut()
            .iter_mut()
            .flat_map(|section| &mut section.rules)
        {
            rule.when.map_tests(|test| bind_test(test, &values));
        }
        Ok(bound)
    }

    /// The same ruleset with its variables in this order; `None` if these are not its variables.
    pub fn with_variables_in_order(&self, order: &[Variable]) -> Option<Ruleset> {
        let place = |variable: &Variable| order.iter().position(|other| other == variable);
        let places: Option<Vec<VariableIndex>> = self
            .variables()
            .iter()
            .map(|variable| VariableIndex::new(place(variable)?))
            .collect();
        let places = places.filter(|places| places.len() == order.len())?;
        let mut ordered = self.clone().with_variables(order.to_vec());
        for rule in ordered
            .sections_mut()
            .iter_mut()
            .flat_map(|section| &mut section.rules)
        {
            rule.when.map_tests(|test| renumber(test, &places));
        }
        Some(ordered)
    }

    /// The same ruleset, but with the action for bad architectures for all calls if a variable has a value outside
    /// its range. A comparison is then limited to values that can be bound.
    #[must_use]
    pub fn within_ranges(&self) -> Ruleset {
        let mut outside = Vec::new();
        for (index, variable) in self.variables().iter().enumerate() {
            let (first, last) = variable.range;
            let set = [first..=last].into_iter().collect();
            if let Some(place) = VariableIndex::new(index)
                && variable.range != (0, variable.width.max())
            {
                let operand = variable.operand(place);
                let inside = Predicate::Test(Test::In { operand, set });
                outside.push(Predicate::Not(Box::new(inside)));
            }
        }
        let mut restricted = self.clone();
        if outside.is_empty() {
            return restricted;
        }
        let action = self.bad_arch;
        for section in restricted.sections_mut() {
            let rule = Rule {
                syscalls: IntervalSet::full(),
                when: Predicate::Any(outside.clone()),
                action,
                origin: None,
            };
            section.rules.insert(0, rule);
        }
        restricted
    }
}

/// Replaces variables by variables.
fn renumber(mut test: Test, places: &[VariableIndex]) -> Predicate {
    let renumbered = |operand: &mut Operand| {
        if let OperandSource::Variable(index) = &mut operand.source
            && let Some(place) = places.get(index.index())
        {
            *index = *place;
        }
    };
    match &mut test {
        Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. } => {
            renumbered(operand);
        }
        Test::Between { left, right, .. } => {
            renumbered(left);
            renumbered(right);
        }
    }
    Predicate::Test(test)
}

/// Whether the values can be bound to the variables.
///
/// # Errors
/// If the counts of values and variables differ, or a value is out of range.
pub fn check_values(variables: &[Variable], values: &[u64]) -> Result<(), BindError> {
    if variables.len() != values.len() {
        return Err(BindError::Count {
            variables: variables.len(),
            values: values.len(),
        });
    }
    let mut pairs = variables.iter().zip(values);
    match pairs.find(|(variable, value)| !variable.admits(**value)) {
        None => Ok(()),
        Some((variable, value)) => Err(BindError::OutOfRange {
            variable: variable.clone(),
            value: *value,
        }),
    }
}

/// Replaces variables by constants.
fn bind_test(test: Test, values: &Values) -> Predicate {
    let is_variable = |operand: &Operand| matches!(operand.source, OperandSource::Variable(_));
    // Only variables are read from it.
    let no_call = SeccompData::default();
    let left = match &test {
        Test::Compare { operand, .. } | Test::Masked { operand, .. } | Test::In { operand, .. } => {
            operand
        }
        Test::Between { left, op, right } if is_variable(right) && !is_variable(left) => {
            return Predicate::compare(*left, *op, right.read(&no_call, values));
        }
        Test::Between { left, op, right } if is_variable(left) && !is_variable(right) => {
            return Predicate::compare(*right, op.swapped(), left.read(&no_call, values));
        }
        Test::Between { left, .. } => left,
    };
    match is_variable(left) {
        false => Predicate::Test(test),
        true if test.holds(&no_call, values) => Predicate::True,
        true => Predicate::False,
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "variable {:?}", self.name)?;
        if let Some(element) = self.element {
            write!(f, " {element}")?;
        }
        let (first, last) = self.range;
        write!(f, " {} {first:#x}..{last:#x}", self.width.name())
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::Count { variables, values } => {
                write!(f, "the policy has {variables} variables, not {values}")
            }
            BindError::OutOfRange { variable, value } => {
                let (first, last) = variable.range;
                let title = variable.title();
                write!(
                    f,
                    "`{title}` is declared for {first} to {last}, not for {value}"
                )
            }
            BindError::Unknown { name, nearest } => {
                write!(f, "there is no variable `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            BindError::Unset { variable } => write!(f, "`{}` has no value", variable.title()),
            BindError::Elements {
                name,
                wanted,
                given,
            } => write!(f, "`{name}` stands for {wanted} and got {given}"),
        }
    }
}

impl std::error::Error for BindError {}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch};

    use super::*;
    use crate::ruleset::Section;
    use crate::{CmpOp, text};

    fn variables() -> Vec<Variable> {
        let variable = |name: &str, element, width: VariableWidth| Variable {
            name: name.into(),
            element,
            width,
            range: (0, width.max()),
        };
        vec![
            variable("fd", None, VariableWidth::U32),
            variable("address", None, VariableWidth::U64),
            variable("fds", Some(0), VariableWidth::U32),
        ]
    }

    /// A rule for each comparison of the first argument with each variable, from either side.
    fn comparing() -> Ruleset {
        let mut rules = Vec::new();
        for (index, variable) in variables().iter().enumerate() {
            let variable = variable.operand(VariableIndex::new(index).unwrap());
            for op in CmpOp::ALL {
                let arg = Operand::arg(tamis_abi::ArgIndex::ALL[0]);
                for (left, right) in [(arg, variable), (variable, arg)] {
                    rules.push(Rule {
                        syscalls: IntervalSet::single(rules.len() as u32),
                        when: Predicate::Test(Test::Between { left, op, right }),
                        action: Action::ALLOW,
                        origin: None,
                    });
                }
            }
        }
        let section = Section {
            arch: Arch::X86_64,
            rules,
            default: Action::errno(1),
        };
        Ruleset::new(vec![section], Action::KILL_PROCESS)
            .unwrap()
            .with_variables(variables())
    }

    #[test]
    fn binding_means_what_the_values_mean() {
        let ruleset = comparing();
        let numbers = [0, 7, 8, u64::from(u32::MAX), 1 << 32 | 7, u64::MAX];
        for wide in numbers {
            let values = [7, wide, 8];
            let bound = ruleset.bind(&values).unwrap();
            assert!(bound.variables().is_empty());
            for nr in 0..ruleset.sections()[0].rules.len() as u32 {
                for arg in numbers {
                    let data = SeccompData {
                        nr,
                        arch: Arch::X86_64.audit(),
                        args: [arg; 6],
                        ..SeccompData::default()
                    };
                    let answer = bound.decide(&data).action;
                    assert_eq!(
                        ruleset.decide_with(&data, &Values::new(&values)).action,
                        answer,
                        "{nr} {arg:#x} {wide:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_that_were_not_declared_are_refused() {
        let ruleset = comparing();
        assert!(matches!(
            ruleset.bind(&[1, 2]),
            Err(BindError::Count { .. })
        ));
        let wide = ruleset.bind(&[1 << 32, 2, 3]).unwrap_err();
        assert!(wide.to_string().contains("`fd`"), "{wide}");
    }

    #[test]
    fn in_another_order_the_same_values_mean_the_same() {
        let ruleset = comparing();
        let mut order = ruleset.variables().to_vec();
        order.rotate_left(1);
        let ordered = ruleset.with_variables_in_order(&order).unwrap();
        let values = [7, 1 << 32, 8];
        let mut rotated = values;
        rotated.rotate_left(1);
        assert_eq!(ordered.bind(&rotated), ruleset.bind(&values));
        assert_eq!(ruleset.with_variables_in_order(&order[1..]), None);
    }

    #[test]
    fn outside_of_its_range_a_variable_makes_all_calls_bad() {
        let mut narrow = variables();
        narrow[1].range = (10, 20);
        let ruleset = comparing().with_variables(narrow).within_ranges();
        for (value, is_bad) in [(9, true), (10, false), (20, false), (21, true)] {
            let data = SeccompData {
                nr: 1000,
                arch: Arch::X86_64.audit(),
                ..SeccompData::default()
            };
            let values = Values::new(&[0, value]);
            let answer = ruleset.decide_with(&data, &values).action;
            assert_eq!(answer == Action::KILL_PROCESS, is_bad, "{value}");
        }
    }

    #[test]
    fn the_text_form_keeps_variables() {
        let ruleset = comparing();
        let printed = ruleset.to_string();
        let mut sources = tamis_diag::Sources::new();
        let source = sources.add("test", printed);
        assert_eq!(text::parse(&sources, source).unwrap(), ruleset);
    }
}
