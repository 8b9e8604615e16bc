//! The command lines of a service, and what they become: `ExecStart=/bin/x` runs `/bin/x` under the filter.
//!
//! A line is read by systemd's rules, and refused if systemd refuses it. Its first word moves behind the program that
//! installs the filter, so it is written anew: systemd looks for variables in every word but the first, and a `$` of the
//! first one is doubled. The words behind it stay as they are written, quotes and specifiers included. Without `@` the
//! program gets its own path as its name, in which systemd does look for variables; such a name is given to it. A name without a path becomes the file that systemd finds, and stays the name that the
//! program gets: the installer would look for it in other folders. A line with `+` gets no filter of systemd's, and none
//! here; with `PermissionsStartOnly=` the same is true of all lines but `ExecStart=`.

use std::path::Path;

use tamis_policy::systemd::Assignment;

use super::program;
use super::settings::Settings;
use super::words::{self, Unbalanced, Word, Writer};

/// The directives with command lines, all of which systemd runs under the filters of the service.
pub(super) const DIRECTIVES: [&str; 7] = [
    "ExecCondition",
    "ExecStartPre",
    "ExecStart",
    "ExecStartPost",
    "ExecReload",
    "ExecStop",
    "ExecStopPost",
];
/// Settings whose names begin like those, without command lines.
const PATHS: [&str; 2] = ["ExecPaths", "ExecSearchPath"];
/// The directive of the service's own process.
const START: &str = "ExecStart";
/// A command line of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) directive: &'static str,
    /// The line as it is written.
    value: String,
    signs: Signs,
    /// Whether systemd runs it without any restriction.
    pub(super) is_free: bool,
    /// The program without quotes and escapes; specifiers stay.
    program: Vec<u8>,
    /// The name that the program gets, if it isn't its path; specifiers and variables stay.
    name: Option<Vec<u8>>,
    /// The other words, as they are written.
    rest: String,
    /// Where the program was found, if it is named without a path.
    found: Option<String>,
}

/// The signs before a program, of which systemd takes each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Signs {
    /// As they are written, without `@`.
    text: String,
    /// `@`: the second word is the name that the program gets.
    has_name: bool,
    /// `:`: variables aren't expanded.
    is_literal: bool,
    /// `+`: systemd runs it without any restriction.
    is_free: bool,
    /// The number of `!`.
    exclamations: usize,
}

/// The program that installs the filter, and the filter, by their paths in the service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Installer<'a> {
    pub(super) program: &'a Path,
    /// `exec` for a program with subcommands.
    pub(super) subcommand: Option<&'static str>,
    pub(super) filter: &'a Path,
}

/// Where systemd looks for programs that are named without a path, if the unit doesn't say it.
const SEARCHED: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The folders in which systemd looks for programs of a service that are named without a path. It ignores those whose path isn't
/// absolute.
///
/// # Errors
/// With one that has a specifier, whose meaning is systemd's.
pub(super) fn searched_folders(assignments: &[Assignment]) -> Result<Vec<String>, String> {
    let mut own: Vec<String> = Vec::new();
    for assignment in assignments {
        if assignment.section != "Service" || assignment.key != "ExecSearchPath" {
            continue;
        }
        match assignment.value.is_empty() {
            true => own.clear(),
            false => own.extend(assignment.value.split(':').map(str::to_owned)),
        }
    }
    if let Some(folder) = own.iter().find(|folder| folder.contains('%')) {
        return Err(folder.clone());
    }
    let is_given = !own.is_empty();
    own.retain(|folder| folder.starts_with('/'));
    Ok(match is_given {
        true => own,
        false => SEARCHED.map(str::to_owned).to_vec(),
    })
}

/// The command lines of a service that are in effect, by directive. The function finds the path of a program's name.
///
/// # Errors
/// With the line that can't be carried, and why.
pub(super) fn of_unit(
    assignments: &[Assignment],
    unit: &str,
    find: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<CommandLine>, String> {
    let mut lines: Vec<CommandLine> = Vec::new();
    let is_unknown = |own: &&Assignment| {
        let key = own.key.as_str();
        let is_known = DIRECTIVES.contains(&key) || PATHS.contains(&key);
        own.section == "Service" && key.starts_with("Exec") && !is_known
    };
    if let Some(own) = assignments.iter().find(is_unknown) {
        return Err(format!("{}=: tamis doesn't know what it executes", own.key));
    }
    let only_start_is_bound = Settings(assignments).switch("PermissionsStartOnly");
    for directive in DIRECTIVES {
        let own = assignments
            .iter()
            .filter(|own| own.section == "Service" && own.key == directive);
        let mut of_directive = Vec::new();
        for assignment in own {
            if assignment.value.is_empty() {
                of_directive.clear();
                continue;
            }
            let line = parse(directive, &assignment.value, unit, find);
            let refuse = |why| format!("{directive}={}: {why}", assignment.value);
            let mut line = line.map_err(refuse)?;
            line.is_free |= only_start_is_bound && directive != START;
            of_directive.push(line);
        }
        lines.extend(of_directive);
    }
    Ok(lines)
}

/// The refusal of a line with several commands.
const SEVERAL: &str = "several commands in one line: write a line for each";

fn parse(
    directive: &'static str,
    text: &str,
    unit: &str,
    find: &dyn Fn(&str) -> Option<String>,
) -> Result<CommandLine, String> {
    let (first, mut rest) = next(text)?.ok_or("it has no word")?;
    if first.bytes == b";" {
        return Err(SEVERAL.to_owned());
    }
    let (signs, program) = Signs::of(&first.bytes);
    let resolved = program::resolved(program, unit)?;
    program::check(&resolved)?;
    let mut name = None;
    if signs.has_name {
        let (own, behind) = name_of(rest, &signs)?;
        (name, rest) = (Some(own), behind);
    }
    let mut found = None;
    if !resolved.starts_with(b"/") && !signs.is_free {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let plain = str::from_utf8(program)
            .ok()
            .filter(|_| program.iter().all(is_plain));
        found = plain.and_then(find);
        if found.is_none() {
            let why = "write the absolute path of the program: what systemd finds by its name isn't known here";
            return Err(why.to_owned());
        }
    }
    check_words(rest)?;
    // systemd expands the path where it is the name, but not where it is the file.
    let is_expanded = !signs.is_literal && program.contains(&b'$');
    if name.is_none() && (is_expanded || found.is_some()) {
        name = Some(program.to_vec());
    }
    Ok(CommandLine {
        directive,
        value: text.to_owned(),
        is_free: signs.is_free,
        program: program.to_vec(),
        signs,
        name,
        rest: rest.to_owned(),
        found,
    })
}

/// The next word, and what follows it.
fn next(line: &str) -> Result<Option<(Word<'_>, &str)>, &'static str> {
    words::first(line).map_err(|Unbalanced| "systemd refuses it: its quotes don't end")
}

/// The name behind a program with `@`, and what follows it.
fn name_of<'t>(rest: &'t str, signs: &Signs) -> Result<(Vec<u8>, &'t str), String> {
    let word = match is_separator(rest) {
        true => None,
        false => next(rest)?,
    };
    let (word, behind) = word.ok_or("`@` needs a second word, the name that the program gets")?;
    // systemd has this escape for a word of its own alone.
    if word.written == "\\;" {
        return Ok((b";".to_vec(), behind));
    }
    let is_variable =
        word.bytes.starts_with(b"$") && !matches!(word.bytes.get(1), Some(b'{' | b'$'));
    if is_variable && !signs.is_literal {
        let why = "a variable behind `@` may become several words or none: write it as `${NAME}`";
        return Err(why.to_owned());
    }
    program::check_specifiers(&word.bytes)?;
    Ok((word.bytes, behind))
}

/// Checks the words behind a program.
fn check_words(mut rest: &str) -> Result<(), String> {
    loop {
        if is_separator(rest) {
            return Err(SEVERAL.to_owned());
        }
        let Some((word, behind)) = next(rest)? else {
            return Ok(());
        };
        program::check_specifiers(&word.bytes)?;
        rest = behind;
    }
}

/// Why systemd refuses the commands of a service together (`service_verify` in its `service.c`).
pub(super) fn obstacle(lines: &[CommandLine], settings: Settings<'_>) -> Option<String> {
    let starts = lines.iter().filter(|line| line.directive == START).count();
    let is_oneshot = settings.last("Type") == Some("oneshot");
    match starts {
        0 if lines.is_empty() || is_oneshot => None,
        0 => Some("systemd refuses it: a service without ExecStart= needs Type=oneshot".to_owned()),
        1 => None,
        _ if is_oneshot => None,
        _ => Some("systemd refuses it: several ExecStart= need Type=oneshot".to_owned()),
    }
}

/// Whether what follows begins with the sign between commands.
fn is_separator(rest: &str) -> bool {
    let behind = rest.strip_prefix(';');
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\t', '\n', '\r']))
}

impl Signs {
    /// The signs that the first word begins with, and the program behind them.
    fn of(word: &[u8]) -> (Signs, &[u8]) {
        let mut signs = Signs::default();
        let mut program = word;
        while let Some((sign, behind)) = program.split_first() {
            let is_bound = !signs.is_free && signs.exclamations < 2;
            match sign {
                b'-' if !signs.text.contains('-') => {}
                b'@' if !signs.has_name => signs.has_name = true,
                b':' if !signs.is_literal => signs.is_literal = true,
                b'+' if is_bound && signs.exclamations == 0 => signs.is_free = true,
                b'!' if is_bound => signs.exclamations += 1,
                _ => break,
            }
            if *sign != b'@' {
                signs.text.push(char::from(*sign));
            }
            program = behind;
        }
        (signs, program)
    }
}

impl CommandLine {
    /// Whether systemd changes to the user of the service for it.
    pub(super) fn changes_user(&self) -> bool {
        self.signs.exclamations != 1
    }

    /// The directive and the program, for messages.
    pub(super) fn title(&self) -> String {
        let program = String::from_utf8_lossy(&self.program);
        format!("{}={}", self.directive, program.escape_debug())
    }

    /// What was found for a program that is named without a path.
    pub(super) fn note(&self) -> Option<String> {
        let found = self.found.as_ref()?;
        Some(format!(
            "{}: executes {found}, which systemd finds now; if that moves, run the command again",
            self.title()
        ))
    }

    /// The line with its directive, as it is.
    pub(super) fn as_it_is(&self) -> String {
        format!("{}={}", self.directive, self.value)
    }

    /// The same under the filter. With `keeps_privs` the installer sets `no_new_privs` only if the kernel wants it.
    pub(super) fn under(&self, installer: &Installer<'_>, keeps_privs: bool) -> String {
        if self.is_free {
            return self.as_it_is();
        }
        // Variables aren't looked for in the first word, nor with a colon in the others.
        let plain = |has_plain_dollar| Writer {
            has_plain_dollar,
            ..Writer::PLAIN
        };
        let expanded = |has_plain_dollar| Writer {
            has_plain_percent: false,
            has_plain_dollar,
        };
        let is_literal = self.signs.is_literal;
        let first = plain(false).path(installer.program);
        let mut line = format!("{}={}{first}", self.directive, self.signs.text);
        let keep = keeps_privs.then_some("--keep-privs");
        for word in installer.subcommand.into_iter().chain(keep) {
            line.push_str(&format!(" {word}"));
        }
        let filter = plain(!is_literal).path(installer.filter);
        line.push_str(&format!(" -p {filter}"));
        if let Some(name) = &self.name {
            // One word with the option, so that it never becomes several words or another option.
            let name = expanded(false).word(&[b"--argv0=", name.as_slice()].concat());
            line.push_str(&format!(" {name}"));
        }
        let program = match &self.found {
            Some(found) => plain(!is_literal).word(found.as_bytes()),
            None => expanded(!is_literal).word(&self.program),
        };
        line.push_str(&format!(" -- {program}"));
        if !self.rest.is_empty() {
            line.push_str(&format!(" {}", self.rest));
        }
        line
    }
}

#[cfg(test)]
mod tests;
