//! The command lines of a service under the filter.
//!
//! A line is parsed by systemd's rules, and rejected if systemd rejects it. The program becomes an argument of the
//! installer, so it is written anew: systemd expands variables in every word but the first, and a `$` in the first word
//! is doubled. The other words are copied, with quotes and specifiers. Without `@` the program's name is its path, in
//! which systemd does expand variables, so such a name is passed explicitly. A program without a path is replaced by
//! the file that systemd finds, because the installer would search other folders; its name stays. systemd applies no
//! filter to a line with `+` and, with `PermissionsStartOnly=`, to lines other than `ExecStart=`; neither does the
//! drop-in.

use std::path::Path;

use tamis_policy::systemd::Assignment;

use super::program;
use super::settings::Settings;
use super::words::{self, Unbalanced, Word, Writer};

/// The directives with command lines; systemd applies the service's filters to all of them.
pub(super) const DIRECTIVES: [&str; 7] = [
    "ExecCondition",
    "ExecStartPre",
    "ExecStart",
    "ExecStartPost",
    "ExecReload",
    "ExecStop",
    "ExecStopPost",
];
/// Settings with the same prefixes, but without command lines.
const PATHS: [&str; 2] = ["ExecPaths", "ExecSearchPath"];
/// The directive of the main process.
const START: &str = "ExecStart";
/// A command line of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) directive: &'static str,
    /// The line as written.
    value: String,
    prefixes: Prefixes,
    /// Whether systemd runs it without restrictions.
    pub(super) is_free: bool,
    /// The program without quotes and escapes, with specifiers.
    program: Vec<u8>,
    /// The name of the program, if it isn't its path; with specifiers and variables.
    name: Option<Vec<u8>>,
    /// The other words as written.
    rest: String,
    /// The path of a program that is named without one.
    found: Option<String>,
}

/// The prefixes of a program; systemd accepts each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Prefixes {
    /// The prefixes as written, without `@`.
    text: String,
    /// `@`: the second word is the name of the program.
    has_name: bool,
    /// `:`: variables aren't expanded.
    is_literal: bool,
    /// `+`: systemd runs it without restrictions.
    is_free: bool,
    /// The number of `!`.
    exclamations: usize,
}

/// The paths of the installer and the filter in the service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Installer<'a> {
    pub(super) program: &'a Path,
    /// `exec` for an installer with subcommands.
    pub(super) subcommand: Option<&'static str>,
    pub(super) filter: &'a Path,
}

/// The default folders in which systemd searches programs without a path.
const SEARCHED: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The folders in which systemd searches programs without a path; it ignores relative ones.
///
/// # Errors
/// A folder with a specifier, because only systemd can expand it.
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

/// The effective command lines of a service, by directive. The function finds the path of a program.
///
/// # Errors
/// The line that can't be converted, with the reason.
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

/// The error for a line with several commands.
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
    let (prefixes, program) = Prefixes::split(&first.bytes);
    let resolved = program::resolved(program, unit)?;
    program::check(&resolved)?;
    let mut name = None;
    if prefixes.has_name {
        let (own, behind) = name_of(rest, &prefixes)?;
        (name, rest) = (Some(own), behind);
    }
    let mut found = None;
    if !resolved.starts_with(b"/") && !prefixes.is_free {
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
    // systemd expands variables in the path as the program's name, but not as its file.
    let is_expanded = !prefixes.is_literal && program.contains(&b'$');
    if name.is_none() && (is_expanded || found.is_some()) {
        name = Some(program.to_vec());
    }
    Ok(CommandLine {
        directive,
        value: text.to_owned(),
        is_free: prefixes.is_free,
        program: program.to_vec(),
        prefixes,
        name,
        rest: rest.to_owned(),
        found,
    })
}

/// Splits a line after its first word.
fn next(line: &str) -> Result<Option<(Word<'_>, &str)>, &'static str> {
    words::first(line).map_err(|Unbalanced| "systemd refuses it: its quotes don't end")
}

/// Splits a line after the name of a program with `@`.
fn name_of<'t>(rest: &'t str, prefixes: &Prefixes) -> Result<(Vec<u8>, &'t str), String> {
    let word = match is_separator(rest) {
        true => None,
        false => next(rest)?,
    };
    let (word, behind) = word.ok_or("`@` needs a second word, the name that the program gets")?;
    // systemd recognises this escape only as a separate word.
    if word.written == "\\;" {
        return Ok((b";".to_vec(), behind));
    }
    let is_variable =
        word.bytes.starts_with(b"$") && !matches!(word.bytes.get(1), Some(b'{' | b'$'));
    if is_variable && !prefixes.is_literal {
        let why = "a variable behind `@` may become several words or none: write it as `${NAME}`";
        return Err(why.to_owned());
    }
    program::check_specifiers(&word.bytes)?;
    Ok((word.bytes, behind))
}

/// Checks the arguments of a program.
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

/// The reason why systemd rejects the commands of a service together (`service_verify` in its `service.c`).
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

/// Whether a text begins with the separator of commands.
fn is_separator(rest: &str) -> bool {
    let behind = rest.strip_prefix(';');
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([' ', '\t', '\n', '\r']))
}

impl Prefixes {
    /// Splits the first word into prefixes and the program.
    fn split(word: &[u8]) -> (Prefixes, &[u8]) {
        let mut prefixes = Prefixes::default();
        let mut program = word;
        while let Some((sign, behind)) = program.split_first() {
            let is_bound = !prefixes.is_free && prefixes.exclamations < 2;
            match sign {
                b'-' if !prefixes.text.contains('-') => {}
                b'@' if !prefixes.has_name => prefixes.has_name = true,
                b':' if !prefixes.is_literal => prefixes.is_literal = true,
                b'+' if is_bound && prefixes.exclamations == 0 => prefixes.is_free = true,
                b'!' if is_bound => prefixes.exclamations += 1,
                _ => break,
            }
            if *sign != b'@' {
                prefixes.text.push(char::from(*sign));
            }
            program = behind;
        }
        (prefixes, program)
    }
}

impl CommandLine {
    /// Whether systemd changes the user for this command.
    pub(super) fn changes_user(&self) -> bool {
        self.prefixes.exclamations != 1
    }

    /// The directive and the program, for messages.
    pub(super) fn title(&self) -> String {
        let program = String::from_utf8_lossy(&self.program);
        format!("{}={}", self.directive, program.escape_debug())
    }

    /// A note on the path of a program that is named without one.
    pub(super) fn note(&self) -> Option<String> {
        let found = self.found.as_ref()?;
        Some(format!(
            "{}: executes {found}, which systemd finds now; if that moves, run the command again",
            self.title()
        ))
    }

    /// The unchanged line with its directive.
    pub(super) fn as_it_is(&self) -> String {
        format!("{}={}", self.directive, self.value)
    }

    /// The line under the filter. With `keeps_privs` the installer sets `no_new_privs` only if the kernel requires it.
    pub(super) fn under(&self, installer: &Installer<'_>, keeps_privs: bool) -> String {
        if self.is_free {
            return self.as_it_is();
        }
        // Variables aren't expanded in the first word and, with `:`, in none.
        let plain = |has_plain_dollar| Writer {
            has_plain_dollar,
            ..Writer::PLAIN
        };
        let expanded = |has_plain_dollar| Writer {
            has_plain_percent: false,
            has_plain_dollar,
        };
        let is_literal = self.prefixes.is_literal;
        let first = plain(false).path(installer.program);
        let mut line = format!("{}={}{first}", self.directive, self.prefixes.text);
        let keep = keeps_privs.then_some("--keep-privs");
        for word in installer.subcommand.into_iter().chain(keep) {
            line.push_str(&format!(" {word}"));
        }
        let filter = plain(!is_literal).path(installer.filter);
        line.push_str(&format!(" -p {filter}"));
        if let Some(name) = &self.name {
            // A single word with the option can't become several words or another option.
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
