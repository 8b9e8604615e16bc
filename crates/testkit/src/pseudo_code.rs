//! libseccomp's pseudo filter code, and an evaluator for it.
//!
//! The library can print the meaning of a filter, from the same rules as the program but not from the program. If
//! program and pseudo code differ, the library's code generator has a bug: a comparison with the meaning of the rules
//! uses the pseudo code.
//!
//! The text is a list of `if (condition)` with an optional `else`, nested by indentation; a branch that reaches no
//! `action` continues behind the `if`.

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, SeccompData, Word};

/// The pseudo code of a filter.
#[derive(Clone, Debug)]
pub struct PseudoCode {
    sections: Vec<(Arch, Vec<Statement>)>,
    bad_arch: Action,
}

#[derive(Clone, Debug)]
enum Statement {
    Action(Action),
    If {
        word: Word,
        mask: u32,
        operator: Operator,
        value: u32,
        yes: Vec<Statement>,
        no: Vec<Statement>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
}

impl PseudoCode {
    /// Reads the output of `seccomp_export_pfc`.
    ///
    /// # Panics
    /// If the text is not in the form of libseccomp 2.5.
    pub fn parse(text: &str) -> PseudoCode {
        let mut code = PseudoCode {
            sections: Vec::new(),
            bad_arch: Action::KILL_THREAD,
        };
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(rest) = line.strip_prefix("# filter for arch ") {
                let name = rest.split(' ').next().expect("a name");
                let arch = Arch::from_name(name).expect("a known architecture");
                lines.next().expect("the test of the architecture");
                let mut body = Vec::new();
                while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                    if !line.trim_start().starts_with('#') {
                        body.push(line);
                    }
                }
                code.sections.push((arch, block(&mut body.as_slice(), 2)));
            } else if let Some(action) = line.strip_prefix("action ") {
                code.bad_arch = parse_action(action);
            }
        }
        code
    }

    /// The action for a call.
    ///
    /// # Panics
    /// If a section ends without an action, which libseccomp never writes.
    pub fn decide(&self, data: &SeccompData) -> Action {
        let arch = Arch::of_call(data.arch, data.nr);
        let section = self.sections.iter().find(|(known, _)| Some(*known) == arch);
        match section {
            Some((_, statements)) => answer(statements, data).expect("a section ends in an action"),
            None => self.bad_arch,
        }
    }
}

fn answer(statements: &[Statement], data: &SeccompData) -> Option<Action> {
    statements.iter().find_map(|statement| match statement {
        Statement::Action(action) => Some(*action),
        Statement::If {
            word,
            mask,
            operator,
            value,
            yes,
            no,
        } => {
            let tested = data.word(*word) & mask;
            let holds = match operator {
                Operator::Equal => tested == *value,
                Operator::Greater => tested > *value,
                Operator::GreaterOrEqual => tested >= *value,
            };
            answer(if holds { yes } else { no }, data)
        }
    })
}

/// The statements at one depth of indentation.
fn block(lines: &mut &[&str], indent: usize) -> Vec<Statement> {
    let mut statements = Vec::new();
    while let Some((line, rest)) = lines.split_first() {
        let text = line.trim_start();
        if line.len() - text.len() != indent || text == "else" {
            break;
        }
        *lines = rest;
        if let Some(action) = text.strip_prefix("action ") {
            statements.push(Statement::Action(parse_action(action)));
            continue;
        }
        let yes = block(lines, indent + 2);
        let mut no = Vec::new();
        if let Some((line, rest)) = lines.split_first()
            && line.trim_start() == "else"
            && line.len() == indent + 4
        {
            *lines = rest;
            no = block(lines, indent + 2);
        }
        statements.push(condition(text, yes, no));
    }
    statements
}

/// `if ($a0.hi32 & 0x000000ff == 5)`
fn condition(text: &str, yes: Vec<Statement>, no: Vec<Statement>) -> Statement {
    let inner = text
        .strip_prefix("if ($")
        .and_then(|text| text.strip_suffix(')'));
    let parts: Vec<&str> = inner.expect("a condition").split(' ').collect();
    let (name, mask, operator, value) = match parts[..] {
        [name, operator, value] => (name, u32::MAX, operator, value),
        [name, "&", mask, operator, value] => {
            let mask = mask.strip_prefix("0x").expect("a mask in hexadecimal");
            (
                name,
                u32::from_str_radix(mask, 16).expect("a mask"),
                operator,
                value,
            )
        }
        _ => panic!("unknown condition {text}"),
    };
    Statement::If {
        word: word(name),
        mask,
        operator: match operator {
            "==" => Operator::Equal,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            other => panic!("unknown operator {other}"),
        },
        value: value.parse().expect("a number"),
        yes,
        no,
    }
}

/// `syscall`, `a0`, `a0.hi32`, `a0.lo32`
fn word(name: &str) -> Word {
    if name == "syscall" {
        return Word::NR;
    }
    let (argument, half) = name.split_once('.').unwrap_or((name, "lo32"));
    let index = argument[1..].parse().ok().and_then(ArgIndex::new);
    let index = index.expect("an argument");
    if half == "hi32" {
        Word::arg_high(index)
    } else {
        Word::arg_low(index)
    }
}

/// `ERRNO(1);`
fn parse_action(text: &str) -> Action {
    let text = text.trim_end_matches(';');
    let (name, data) = match text.split_once('(') {
        Some((name, data)) => (name, data.trim_end_matches(')').parse().expect("a number")),
        None => (text, 0),
    };
    let kind = match name {
        "KILL" => ActionKind::KillThread,
        other => ActionKind::from_name(&other.to_lowercase()).expect("a known action"),
    };
    Action::new(kind, data)
}
