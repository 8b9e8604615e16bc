//! Values for run-time variables, by name.
//!
//! A program that compiles a policy itself can set variables by the names in the policy. Binding by name compares one
//! name per value and needs no memory; the result is a copy of the program with the values in their places. Programs
//! that embed a compiled filter use the typed source code of `tamis compile --emit` instead.

use tamis_abi::VariableIndex;
use tamis_bpf::Program;
use tamis_diag::suggest;
use tamis_rules::BindError;

use crate::verify::Compiled;

/// Values for the variables of a [`Compiled`], made by [`Compiled::values`].
#[derive(Clone, Debug)]
pub struct Binding<'a> {
    compiled: &'a Compiled,
    values: [u64; VariableIndex::COUNT],
    /// A bit for each variable that has a value.
    given: u32,
}

impl Compiled {
    /// Values by name; [`Binding::bind`] then returns the program.
    ///
    /// ```
    /// # use tamis_compiler::{CompileOptions, compile};
    /// # let text = "ruleset bad-arch kill_process\nvariable \"fd\" u32 0x0..0xffffffff\n\
    /// #             section x86_64 default errno(1)\n  write if arg0.low == var0.low: allow\n";
    /// # let mut sources = tamis_diag::Sources::new();
    /// # let source = sources.add("a.rules", text);
    /// # let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
    /// let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    /// let program = compiled.values().set("fd", 3)?.bind()?;
    /// assert_eq!(Ok(program), compiled.bind(&[3]));
    /// # Ok::<(), tamis_rules::BindError>(())
    /// ```
    pub fn values(&self) -> Binding<'_> {
        Binding::new(self)
    }
}

impl<'a> Binding<'a> {
    fn new(compiled: &'a Compiled) -> Binding<'a> {
        Binding {
            compiled,
            values: [0; VariableIndex::COUNT],
            given: 0,
        }
    }

    /// Sets the value of a variable; a later call replaces the value.
    ///
    /// # Errors
    /// If no variable has the name, several variables have it, or the value is outside the declared range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<&mut Binding<'a>, BindError> {
        self.set_all(name, &[value])
    }

    /// Sets the values of a set of variables. A set that is not full repeats one of its values.
    ///
    /// # Errors
    /// As [`set`](Self::set), and if the number of values differs from the number of variables with the name.
    pub fn set_all(&mut self, name: &str, values: &[u64]) -> Result<&mut Binding<'a>, BindError> {
        let variables = self.compiled.variables();
        let Some(first) = variables.iter().position(|known| *known.name == *name) else {
            let names = variables.iter().map(|known| &*known.name);
            return Err(BindError::Unknown {
                name: name.to_owned(),
                nearest: suggest::nearest(name, names).map(str::to_owned),
            });
        };
        // The elements of a set are consecutive.
        let named = &variables[first..];
        let wanted = named
            .iter()
            .take_while(|known| *known.name == *name)
            .count();
        if values.len() != wanted {
            return Err(BindError::Elements {
                name: name.to_owned(),
                wanted,
                given: values.len(),
            });
        }
        let mut pairs = named.iter().zip(values);
        if let Some((variable, value)) = pairs.find(|(known, value)| !known.admits(**value)) {
            return Err(BindError::OutOfRange {
                variable: variable.clone(),
                value: *value,
            });
        }
        self.values[first..first + wanted].copy_from_slice(values);
        for index in first..first + wanted {
            self.given |= 1 << index;
        }
        Ok(self)
    }

    /// The program for these values: a copy with the values stored in their places.
    ///
    /// # Errors
    /// If a variable has no value.
    pub fn bind(&self) -> Result<Program, BindError> {
        let variables = self.compiled.variables();
        let is_given = |index: usize| self.given & 1 << index != 0;
        match (0..variables.len()).find(|index| !is_given(*index)) {
            None => {
                let template = self.compiled.template();
                Ok(template.bind(&self.values[..variables.len()]))
            }
            Some(index) => Err(BindError::Unset {
                variable: variables[index].clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileOptions, compile};

    fn compiled() -> Compiled {
        let text = "ruleset bad-arch kill_process\n\
                    variable \"fd\" u32 0x3..0x9\n\
                    variable \"fds\" 0 u32 0x0..0xffffffff\n\
                    variable \"fds\" 1 u32 0x0..0xffffffff\n\
                    section x86_64 default errno(1)\n  \
                    write if arg0.low == var0.low: allow\n  \
                    read if arg0.low == var1.low: allow\n  \
                    read if arg0.low == var2.low: allow\n";
        let mut sources = tamis_diag::Sources::new();
        let source = sources.add("a.rules", text);
        let ruleset = tamis_rules::text::parse(&sources, source).unwrap();
        compile(&ruleset, &CompileOptions::default()).unwrap()
    }

    #[test]
    fn names_and_places_bind_the_same() {
        let compiled = compiled();
        let mut values = compiled.values();
        values
            .set_all("fds", &[7, 8])
            .unwrap()
            .set("fd", 4)
            .unwrap();
        assert_eq!(values.bind(), compiled.bind(&[4, 7, 8]));
        values.set("fd", 5).unwrap();
        assert_eq!(values.bind(), compiled.bind(&[5, 7, 8]));
    }

    #[test]
    fn mistakes_name_the_variable() {
        let compiled = compiled();
        let mut values = compiled.values();
        let refusals = [
            (
                values.clone().set("fdss", 4).map(|_| ()),
                "did you mean `fds`?",
            ),
            (
                values.clone().set("fds", 4).map(|_| ()),
                "`fds` stands for 2 and got 1",
            ),
            (
                values.clone().set("fd", 10).map(|_| ()),
                "declared for 3 to 9, not for 10",
            ),
            (
                values.set("fd", 9).unwrap().bind().map(|_| ()),
                "`fds[0]` has no value",
            ),
        ];
        for (refusal, says) in refusals {
            let said = refusal.unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
