//! `NAME=VALUE`: values for the run-time variables of a policy.
//!
//! With values for all variables, a policy can be compiled to a complete program, evaluated and installed. Without, it
//! can only be compared, or compiled to source code that binds the variables.

use tamis_diag::{Diagnostic, suggest};
use tamis_rules::{Ruleset, Variable};

use crate::code;
use crate::error::Error;
use crate::loaded::Loaded;

/// Values for variables, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(pub Vec<Binding>);

/// A variable's name with its value, or with the values of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The variable's name.
    pub name: String,
    /// The values.
    pub values: Vec<u64>,
}

impl Binding {
    /// Parses `NAME=VALUE`, with commas between several values.
    ///
    /// # Errors
    /// A message with the expected form.
    pub fn parse(text: &str) -> Result<Binding, String> {
        let (name, values) = text
            .split_once('=')
            .ok_or("write the name, `=` and the value: `fd=3`")?;
        let values: Option<Vec<u64>> = values.split(',').map(parse_value).collect();
        Ok(Binding {
            name: name.to_owned(),
            values: values.ok_or("values are decimal, or hexadecimal with 0x, up to 64 bits")?,
        })
    }
}

fn parse_value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl Bindings {
    /// Rejects values for names that none of the inputs declares.
    ///
    /// # Errors
    /// If there is such a name.
    pub fn check<'l>(&self, inputs: impl Iterator<Item = &'l Loaded> + Clone) -> Result<(), Error> {
        self.check_names(inputs.flat_map(|input| match input {
            Loaded::Policy(policy) => policy.declared.as_slice(),
            Loaded::Program(_) => &[],
        }))
    }

    /// Rejects values for undeclared names.
    pub(crate) fn check_names<'l>(
        &self,
        declared: impl Iterator<Item = &'l Variable> + Clone,
    ) -> Result<(), Error> {
        for binding in &self.0 {
            if !declared
                .clone()
                .any(|variable| *variable.name == binding.name)
            {
                return Err(unknown(binding, declared));
            }
        }
        Ok(())
    }

    /// Binds either all variables of the ruleset or none.
    pub(crate) fn apply(&self, ruleset: Ruleset) -> Result<Ruleset, Error> {
        let variables = ruleset.variables();
        let is_bound = |variable: &Variable| {
            let mut bindings = self.0.iter();
            bindings.any(|binding| *binding.name == *variable.name)
        };
        if !variables.iter().any(is_bound) {
            return Ok(ruleset);
        }
        let values: Result<Vec<u64>, Error> = variables
            .iter()
            .map(|variable| self.value(variable, variables))
            .collect();
        ruleset.bind(&values?).map_err(|error| {
            Error::usage(error.to_string(), "bind a value within the declared range")
        })
    }

    fn value(&self, variable: &Variable, variables: &[Variable]) -> Result<u64, Error> {
        let name = &variable.name;
        let bindings: Vec<&Binding> = self
            .0
            .iter()
            .filter(|binding| *binding.name == **name)
            .collect();
        let [binding] = bindings[..] else {
            return Err(match bindings.is_empty() {
                true => Error::usage(
                    format!("`{name}` has no value"),
                    format!("bind all variables or none: `--bind {name}=…`"),
                ),
                false => Error::usage(
                    format!("`{name}` has two values"),
                    "give values of a set in one option, separated by commas",
                ),
            });
        };
        let wanted = variables.iter().filter(|other| other.name == *name).count();
        if binding.values.len() != wanted {
            let given = binding.values.len();
            return Err(Error::usage(
                format!("`{name}` has {wanted}, but got {given}"),
                "to bind fewer values, repeat one of them",
            ));
        }
        Ok(binding.values[variable.element.unwrap_or(0) as usize])
    }
}

/// The error for a variable without a value where one is needed.
pub(crate) fn unbound(variable: &Variable) -> Diagnostic {
    let name = &variable.name;
    Diagnostic::error(
        code::UNBOUND_VARIABLE,
        format!("the variable `{name}` is not bound"),
    )
    .note("its value is only known when the filter is installed")
    .help(format!(
        "give it a value, `--bind {name}=…`, or let `tamis compile --emit c`, `rust` or `go` write source code \
         that binds it"
    ))
}

fn unknown<'l>(binding: &Binding, declared: impl Iterator<Item = &'l Variable> + Clone) -> Error {
    let name = &binding.name;
    let known = declared.map(|variable| &*variable.name);
    let help = match (suggest::nearest(name, known.clone()), known.clone().next()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, None) => "declare a variable with `let fd: u32`".to_owned(),
        (None, Some(_)) => format!("there is {}", known.collect::<Vec<_>>().join(", ")),
    };
    Error::usage(format!("there is no variable `{name}`"), help)
}

/// Makes policies with unbound variables comparable: their variables must agree in names, places and allowed values.
/// Returns the common variables by index; there are none if no policy has any.
///
/// # Errors
/// If two policies declare different variables.
pub fn match_variables<'l>(
    inputs: impl Iterator<Item = &'l mut Loaded>,
) -> Result<Vec<Variable>, Error> {
    let mut order: Option<(String, Vec<Variable>)> = None;
    for input in inputs {
        let Loaded::Policy(policy) = input else {
            continue;
        };
        if policy.ruleset.variables().is_empty() {
            continue;
        }
        let name = policy.name.clone();
        let (first, order) =
            order.get_or_insert_with(|| (name, policy.ruleset.variables().to_vec()));
        let Some(ordered) = policy.ruleset.with_variables_in_order(order) else {
            return Err(Error::usage(
                format!("{first} and {} declare different variables", policy.name),
                "declare the same names, widths and ranges, or give values with `--bind`",
            ));
        };
        policy.ruleset = ordered.within_ranges();
    }
    Ok(order.map(|(_, order)| order).unwrap_or_default())
}
