//! Random run-time variables, which replace some constants of a ruleset.

use tamis_abi::VariableIndex;
use tamis_rules::{
    CmpOp, Operand, Part, Predicate, Ruleset, Section, Test, Variable, VariableWidth,
};

use crate::rng::Rng;

/// The ruleset with variables instead of some constants, often the same variable for equal ones, and the values for
/// which it is equivalent to the original.
///
/// # Panics
/// Never: the architectures do not change.
pub fn with_variables(rng: &mut Rng, ruleset: &Ruleset) -> (Ruleset, Vec<u64>) {
    let mut made = Made::default();
    let mut sections: Vec<Section> = ruleset.sections().to_vec();
    for rule in sections.iter_mut().flat_map(|section| &mut section.rules) {
        rule.when.map_tests(|test| replaced(rng, test, &mut made));
    }
    let ruleset = Ruleset::new(sections, ruleset.bad_arch).expect("no architecture twice");
    (ruleset.with_variables(made.variables), made.values)
}

#[derive(Default)]
struct Made {
    variables: Vec<Variable>,
    values: Vec<u64>,
}

impl Made {
    /// A variable of the width with a range that includes the value, if the limit allows another variable.
    fn variable(
        &mut self,
        rng: &mut Rng,
        width: VariableWidth,
        value: u64,
    ) -> Option<VariableIndex> {
        let mut known = self.variables.iter().zip(&self.values);
        let same = known.position(|(known, of)| known.width == width && *of == value);
        if let Some(index) = same.filter(|_| rng.chance(3, 4)) {
            return VariableIndex::new(index);
        }
        let index = VariableIndex::new(self.variables.len())?;
        self.variables.push(Variable {
            name: format!("v{}", index.index()).into(),
            element: None,
            width,
            range: (0, width.max()),
        });
        self.values.push(value);
        Some(index)
    }
}

fn replaced(rng: &mut Rng, test: Test, made: &mut Made) -> Predicate {
    let comparison = match test {
        Test::Compare { operand, op, value } if value <= operand.max() && rng.chance(2, 3) => {
            comparison(rng, made, operand, op, value)
        }
        _ => None,
    };
    Predicate::Test(comparison.unwrap_or(test))
}

fn comparison(
    rng: &mut Rng,
    made: &mut Made,
    operand: Operand,
    op: CmpOp,
    value: u64,
) -> Option<Test> {
    let is_narrow = value <= u64::from(u32::MAX);
    let width = match operand.part {
        Part::Full if !is_narrow || rng.chance(1, 2) => VariableWidth::U64,
        _ => VariableWidth::U32,
    };
    let index = made.variable(rng, width, value)?;
    let variable = made.variables[index.index()].operand(index);
    Some(if rng.chance(1, 4) {
        Test::Between {
            left: variable,
            op: op.swapped(),
            right: operand,
        }
    } else {
        Test::Between {
            left: operand,
            op,
            right: variable,
        }
    })
}
