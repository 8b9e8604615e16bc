//! `--bind NAME=VALUE`: values for the run-time variables of a policy.
//!
//! A policy for which all variables have values is one without variables: it can be compiled to a complete
//! program, asked about calls, installed. Without values it can only be compared and compiled to source
//! code that binds them.

use tamis_diag::{Diagnostic, code, suggest};
use tamis_rules::{Ruleset, Variable};

use super::Failure;

/// The option.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct BindArgs {
    /// Give a run-time variable of the policy its value, or a set of them its values, separated by commas;
    /// may be repeated
    #[arg(long = "bind", value_name = "NAME=VALUE", value_parser = parse_binding)]
    bindings: Vec<Binding>,
}

/// A name and its values.
#[derive(Clone, Debug)]
struct Binding {
    name: String,
    values: Vec<u64>,
}

fn parse_binding(text: &str) -> Result<Binding, String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("write the name, `=` and the value: `fd=3`")?;
    let values: Option<Vec<u64>> = values.split(',').map(parse_value).collect();
    Ok(Binding {
        name: name.to_owned(),
        values: values.ok_or("values are decimal, or hexadecimal with 0x, up to 64 bits")?,
    })
}

fn parse_value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl BindArgs {
    /// Refuses values for an input that has no variables because it is a program.
    pub(crate) fn refuse_for_program(&self, name: &str) -> Result<(), Failure> {
        match self.bindings.first() {
            None => Ok(()),
            Some(binding) => Err(Failure::usage(
                format!(
                    "{name} is a program, which has no variable `{}`",
                    binding.name
                ),
                "bind the variables of the policy that it was made of",
            )),
        }
    }

    /// The ruleset with the values that were given, for all of its variables or for none.
    pub(crate) fn apply(&self, ruleset: Ruleset) -> Result<Ruleset, Failure> {
        let variables = ruleset.variables();
        for binding in &self.bindings {
            if !variables
                .iter()
                .any(|variable| *variable.name == binding.name)
            {
                return Err(unknown(binding, variables));
            }
        }
        if self.bindings.is_empty() {
            return Ok(ruleset);
        }
        let values: Result<Vec<u64>, Failure> = variables
            .iter()
            .map(|variable| self.value(variable, variables))
            .collect();
        ruleset.bind(&values?).map_err(|error| {
            Failure::usage(error.to_string(), "bind a value that it was declared for")
        })
    }

    fn value(&self, variable: &Variable, variables: &[Variable]) -> Result<u64, Failure> {
        let name = &variable.name;
        let bindings: Vec<&Binding> = self
            .bindings
            .iter()
            .filter(|binding| *binding.name == **name)
            .collect();
        let [binding] = bindings[..] else {
            return Err(match bindings.is_empty() {
                true => Failure::usage(
                    format!("`{name}` has no value"),
                    format!("bind all variables or none: `--bind {name}=…`"),
                ),
                false => Failure::usage(
                    format!("`{name}` has two values"),
                    "give values of a set in one option, separated by commas",
                ),
            });
        };
        let wanted = variables.iter().filter(|other| other.name == *name).count();
        if binding.values.len() != wanted {
            let given = binding.values.len();
            return Err(Failure::usage(
                format!("`{name}` stands for {wanted} and got {given}"),
                "a set that is not full may hold one of its values several times",
            ));
        }
        Ok(binding.values[variable.element.unwrap_or(0) as usize])
    }
}

/// The error for a policy whose variables have no values, where they are needed.
pub(crate) fn unbound(variable: &Variable) -> Diagnostic {
    let name = &variable.name;
    Diagnostic::error(
        code::UNBOUND_VARIABLE,
        format!("the variable `{name}` is not bound"),
    )
    .note("its value is known only when the filter is installed")
    .help(format!(
        "give it a value, `--bind {name}=…`, or let `tamis compile --emit c`, `rust` or `go` write source code \
         that binds it"
    ))
}

fn unknown(binding: &Binding, variables: &[Variable]) -> Failure {
    let name = &binding.name;
    let known = variables.iter().map(|variable| &*variable.name);
    let help = match (suggest::nearest(name, known.clone()), known.clone().next()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, None) => "variables are declared so: `let fd: u32`".to_owned(),
        (None, Some(_)) => format!("it has {}", known.collect::<Vec<_>>().join(", ")),
    };
    Failure::usage(format!("the policy has no variable `{name}`"), help)
}
