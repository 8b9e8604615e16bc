//! Syntax trees as text: the canonical form of a policy.
//!
//! The printed text parses back to the same tree, except for spans. Comments are not in the tree and are lost;
//! parentheses are printed where required.

use std::fmt::{self, Display, Formatter, Write};

use tamis_rules::Part;

use super::ast::{
    Answer, Condition, ConditionKind, Constant, Declaration, Element, Guard, Name, Operand,
    OperandName, Parameter, Policy, Set, Statement, StatementKind, Target, TargetKind, Value,
    ValueKind,
};

/// Longer lines are broken after a comma.
const MAX_COLUMNS: usize = 100;

/// The text of a policy, one statement per line, with long lists broken.
pub fn policy(policy: &Policy) -> String {
    let mut text = String::new();
    for statement in &policy.statements {
        print_statement(&mut text, statement, "");
    }
    text
}

/// The text of a statement, with a final newline.
pub fn statement_kind(kind: &StatementKind) -> String {
    let mut text = String::new();
    print_kind(&mut text, kind, "");
    text
}

fn print_statement(text: &mut String, statement: &Statement, indent: &str) {
    print_kind(text, &statement.kind, indent);
}

fn print_kind(text: &mut String, kind: &StatementKind, indent: &str) {
    let (head, items, tail) = match kind {
        StatementKind::Arch(names) => ("arch ".to_owned(), texts(names), String::new()),
        StatementKind::Fallback(fallback, answer) => (
            format!("{} {answer}", fallback.word()),
            vec![],
            String::new(),
        ),
        StatementKind::KnownUntil(version) => (
            format!("known-until linux {version}"),
            vec![],
            String::new(),
        ),
        StatementKind::Include(path) => (format!("include \"{path}\""), vec![], String::new()),
        StatementKind::Let(name, Constant::Value(value)) => {
            (format!("let {name} = {value}"), vec![], String::new())
        }
        StatementKind::Let(name, Constant::Set(elements)) => {
            (format!("let {name} = {{"), texts(elements), "}".to_owned())
        }
        StatementKind::Variable(declaration) => (declaration.to_string(), vec![], String::new()),
        StatementKind::Set(name, members) => {
            (format!("set {name} = {{"), texts(members), "}".to_owned())
        }
        StatementKind::Rule(answer, targets) => {
            (format!("{answer} "), texts(targets), String::new())
        }
        StatementKind::Parameter(parameter) => (parameter.to_string(), vec![], String::new()),
        StatementKind::On(arches, body) => {
            let head = format!("on {}", texts(arches).join(", "));
            return print_block(text, &head, body, indent);
        }
        StatementKind::When(guard, body) => {
            return print_block(text, &format!("when {guard}"), body, indent);
        }
    };
    print_list(text, &format!("{indent}{head}"), &items, &tail);
}

fn print_block(text: &mut String, head: &str, body: &[Statement], indent: &str) {
    text.push_str(&format!("{indent}{head} {{\n"));
    let inner = format!("{indent}    ");
    for statement in body {
        print_statement(text, statement, &inner);
    }
    text.push_str(&format!("{indent}}}\n"));
}

/// `head item, item, …tail`, broken after commas.
fn print_list(text: &mut String, head: &str, items: &[String], tail: &str) {
    text.push_str(head);
    let mut column = head.len();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
            let is_too_long = column + item.len() + 3 > MAX_COLUMNS;
            text.push_str(if is_too_long { "\n    " } else { " " });
            column = if is_too_long { 4 } else { column + 2 };
        }
        text.push_str(item);
        column += item.len();
    }
    text.push_str(tail);
    text.push('\n');
}

fn texts<T: Display>(items: &[T]) -> Vec<String> {
    items.iter().map(T::to_string).collect()
}

/// Writes items with a separator between them.
fn joined<T: Display>(f: &mut Formatter<'_>, items: &[T], separator: &str) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Display for Declaration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "let {}: {}", self.name, self.width.name())?;
        if let Some(count) = self.count {
            write!(f, "[{count}]")?;
        }
        match &self.range {
            Some((first, last)) => write!(f, " in {first}..{last}"),
            None => Ok(()),
        }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "param {}: ", self.name)?;
        joined(f, &self.values, " | ")?;
        write!(f, " = {}", self.default)
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.values.as_slice(), self.is_negated) {
            ([value], true) => write!(f, "{} != {value}", self.parameter),
            ([value], false) => write!(f, "{} == {value}", self.parameter),
            (values, _) => {
                write!(f, "{} in {{", self.parameter)?;
                joined(f, values, ", ")?;
                f.write_char('}')
            }
        }
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.word())?;
        match &self.data {
            Some(data) => write!(f, "({data})"),
            None => Ok(()),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TargetKind::Call(name) | TargetKind::Set(name) => write!(f, "{name}")?,
            TargetKind::Numbers(first, None) => write!(f, "nr {first}")?,
            TargetKind::Numbers(first, Some(last)) => write!(f, "nr {first}..{last}")?,
        }
        match &self.when {
            Some(when) => write!(f, "({when})"),
            None => Ok(()),
        }
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Element::Value(value) => write!(f, "{value}"),
            Element::Range(first, last) => write!(f, "{first}..{last}"),
        }
    }
}

impl Display for Set {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Set::Named(name) => write!(f, "{name}"),
            Set::Braced(elements, _) => {
                f.write_char('{')?;
                joined(f, elements, ", ")?;
                f.write_char('}')
            }
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            None => "",
            Some(Part::Low) => "low",
            Some(Part::High) => "high",
            Some(Part::Full) => "full",
        };
        let name = match &self.name {
            OperandName::Named(name) => name.clone(),
            OperandName::Indexed(index) => format!("arg[{index}]"),
            OperandName::Ip => "ip".to_owned(),
        };
        match part {
            "" => f.write_str(&name),
            _ => write!(f, "{part}({name})"),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ValueKind::Number(_, text) => f.write_str(text),
            ValueKind::Name(name) => f.write_str(name),
            ValueKind::Negative(inner) => write!(f, "-{}", OperandValue(inner)),
            ValueKind::Complement(inner) => write!(f, "~{}", OperandValue(inner)),
            ValueKind::Shift(left, right) => {
                write!(f, "{} << {}", OperandValue(left), OperandValue(right))
            }
            ValueKind::And(operands) => joined(f, &operand_values(operands), " & "),
            ValueKind::Or(operands) => joined(f, &operand_values(operands), " | "),
        }
    }
}

/// A value as the operand of an operator.
struct OperandValue<'a>(&'a Value);

fn operand_values(values: &[Value]) -> Vec<OperandValue<'_>> {
    values.iter().map(OperandValue).collect()
}

impl Display for OperandValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ValueKind::Shift(..) | ValueKind::And(_) | ValueKind::Or(_) => {
                write!(f, "({})", self.0)
            }
            ValueKind::Number(..)
            | ValueKind::Name(_)
            | ValueKind::Negative(_)
            | ValueKind::Complement(_) => write!(f, "{}", self.0),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let with_mask = |operand: &Operand, mask: &Option<Value>| match mask {
            Some(mask) => format!("{operand} & {}", OperandValue(mask)),
            None => operand.to_string(),
        };
        match &self.kind {
            ConditionKind::Literal(value) => write!(f, "{value}"),
            ConditionKind::Not(inner) => write!(f, "!{}", Factor(inner)),
            ConditionKind::All(parts) => joined(f, &factors(parts), " && "),
            ConditionKind::Any(parts) => joined(f, &factors(parts), " || "),
            ConditionKind::Compare(left, mask, op, right) => {
                write!(f, "{} {} {right}", with_mask(left, mask), op.symbol())
            }
            ConditionKind::Between(left, op, right) => write!(f, "{left} {} {right}", op.symbol()),
            ConditionKind::In(left, mask, set) => write!(f, "{} in {set}", with_mask(left, mask)),
        }
    }
}

/// A condition as the operand of an operator, including `!`, so that `!(a == b)` keeps its parentheses.
struct Factor<'a>(&'a Condition);

fn factors(conditions: &[Condition]) -> Vec<Joined<'_>> {
    conditions.iter().map(Joined).collect()
}

impl Display for Factor<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ConditionKind::Literal(_) | ConditionKind::Not(_) => write!(f, "{}", self.0),
            _ => write!(f, "({})", self.0),
        }
    }
}

/// A condition as an operand of `&&` or `||`.
struct Joined<'a>(&'a Condition);

impl Display for Joined<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ConditionKind::All(_) | ConditionKind::Any(_) => write!(f, "({})", self.0),
            _ => write!(f, "{}", self.0),
        }
    }
}
