//! `--bind NAME=VALUE`: values for the run-time variables of a policy.
//!
//! A policy for which all variables have values is one without variables: it can be compiled to a complete
//! program, asked about calls, installed. Without values it can only be compared and compiled to source
//! code that binds them.

use tamis_diag::{Diagnostic, code, suggest};
use tamis_rules::{Ruleset, Variable};

use super::load::Loaded;
use super::{Failure, Global};

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
    /// Refuses values for names that no input has declared.
    pub(crate) fn check<'l>(
        &self,
        inputs: impl Iterator<Item = &'l Loaded> + Clone,
    ) -> Result<(), Failure> {
        self.check_names(inputs.flat_map(|input| match input {
            Loaded::Policy(policy) => policy.declared.as_slice(),
            Loaded::Program(_) => &[],
        }))
    }

    /// Refuses values for names that are not declared.
    pub(crate) fn check_names<'l>(
        &self,
        declared: impl Iterator<Item = &'l Variable> + Clone,
    ) -> Result<(), Failure> {
        for binding in &self.bindings {
            if !declared
                .clone()
                .any(|variable| *variable.name == binding.name)
            {
                return Err(unknown(binding, declared));
            }
        }
        Ok(())
    }

    /// The ruleset with the values that were given, for all of its variables or for none.
    pub(crate) fn apply(&self, ruleset: Ruleset) -> Result<Ruleset, Failure> {
        let variables = ruleset.variables();
        let is_bound = |variable: &Variable| {
            let mut bindings = self.bindings.iter();
            bindings.any(|binding| *binding.name == *variable.name)
        };
        if !variables.iter().any(is_bound) {
            return Ok(ruleset);
        }
        let values: Result<Vec<u64>, Failure> = variables
            .iter()
            .map(|variable| self.value(variable, variables))
            .collect();
        ruleset.bind(&values?).map_err(|error| {
            Failure::usage(error.to_string(), "bind a value within the declared range")
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
                format!("`{name}` has {wanted}, but got {given}"),
                "to bind fewer values, repeat one of them",
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
    .note("its value is only known when the filter is installed")
    .help(format!(
        "give it a value, `--bind {name}=…`, or let `tamis compile --emit c`, `rust` or `go` write source code \
         that binds it"
    ))
}

fn unknown<'l>(binding: &Binding, declared: impl Iterator<Item = &'l Variable> + Clone) -> Failure {
    let name = &binding.name;
    let known = declared.map(|variable| &*variable.name);
    let help = match (suggest::nearest(name, known.clone()), known.clone().next()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, None) => "declare a variable with `let fd: u32`".to_owned(),
        (None, Some(_)) => format!("there is {}", known.collect::<Vec<_>>().join(", ")),
    };
    Failure::usage(format!("there is no variable `{name}`"), help)
}

/// Makes policies with variables without values comparable: the same variables at the same places, and only
/// the values that can be bound. Says which variable is which in examples.
pub(crate) fn match_variables<'l>(
    inputs: impl Iterator<Item = &'l mut Loaded>,
    global: &Global,
) -> Result<(), Failure> {
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
            return Err(Failure::usage(
                format!("{first} and {} declare different variables", policy.name),
                "declare the same names, widths and ranges, or give values with `--bind`",
            ));
        };
        policy.ruleset = ordered.within_ranges();
    }
    let titles = order.iter().flat_map(|(_, order)| order.iter().enumerate());
    let titles: Vec<String> = titles
        .map(|(index, variable)| format!("var{index} is `{}`", variable.title()))
        .collect();
    if !titles.is_empty() {
        global.notice(&format!("in examples {}", titles.join(", ")));
    }
    Ok(())
}
