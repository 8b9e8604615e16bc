//! The command lines of a service, and what they become: `ExecStart=/bin/x` runs `/bin/x` under the filter.
//!
//! A line is kept as it is written, word for word, quotes and specifiers included; only its first word moves behind the
//! program that installs the filter. A name without a path becomes the file that systemd finds, and stays the name that the
//! program is told: the installer would look for it in other folders. With `@` the second word is the name that the program is told. A `$` in the first
//! word stands for itself, but not in a later one, so it is doubled. A line with `+` gets no filter of systemd's, and none
//! here.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tamis_policy::systemd::Assignment;

/// The directives with command lines, all of which systemd runs under the filters of the service.
const DIRECTIVES: [&str; 7] = [
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
/// The signs that may stand before a command, in any order.
const SIGNS: [char; 5] = ['@', '-', ':', '+', '!'];

/// A command line of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) directive: &'static str,
    signs: String,
    /// The first word, as it is written.
    program: String,
    /// The name that the program is told, as it is written.
    name: Option<String>,
    rest: String,
    /// Where the program was found, if it is named without a path.
    found: Option<String>,
}

/// What installs the filter: its program and options, each quoted as a word of a command line.
#[derive(Clone, Debug)]
pub(super) struct Installer {
    /// The words up to the option for a name.
    pub(super) words: String,
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
            let line = parse(directive, &assignment.value, find);
            let refuse = |why| format!("{directive}={}: {why}", assignment.value);
            of_directive.push(line.map_err(refuse)?);
        }
        lines.extend(of_directive);
    }
    Ok(lines)
}

fn parse(
    directive: &'static str,
    text: &str,
    find: &dyn Fn(&str) -> Option<String>,
) -> Result<CommandLine, &'static str> {
    let start = text.trim_start_matches(SIGNS);
    let signs = text[..text.len() - start.len()].to_owned();
    let (program, mut rest) = word(start);
    let mut name = None;
    if signs.contains('@') {
        let (second, behind) = word(rest);
        if second.is_empty() {
            return Err("`@` needs a second word, the name that the program is told");
        }
        let is_variable = second.starts_with('$') && !second.starts_with("${");
        if is_variable && !signs.contains(':') {
            return Err(
                "a variable behind `@` may become several words or none: write it as `${NAME}`",
            );
        }
        (name, rest) = (Some(second.to_owned()), behind);
    }
    let is_absolute = program
        .trim_start_matches(['"', '\''])
        .starts_with(['/', '%']);
    let mut found = None;
    if !is_absolute && !signs.contains('+') {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = !program.is_empty() && program.chars().all(is_plain);
        found = Some(program).filter(|_| is_name).and_then(find);
        if found.is_none() {
            return Err(
                "write the absolute path of the program: what systemd finds by its name isn't known here",
            );
        }
    }
    let mut behind = rest;
    while !behind.is_empty() {
        let (next, left) = word(behind);
        if next == ";" {
            return Err("several commands in one line: write a line for each");
        }
        behind = left;
    }
    Ok(CommandLine {
        directive,
        signs,
        program: program.to_owned(),
        name,
        rest: rest.to_owned(),
        found,
    })
}

/// The first word of a line as it is written, and what follows it.
fn word(line: &str) -> (&str, &str) {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, sign) in line.char_indices() {
        match (quote, sign) {
            _ if is_escaped => is_escaped = false,
            (_, '\\') => is_escaped = true,
            (Some(open), _) if open == sign => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(sign),
            (None, ' ' | '\t') => return (&line[..at], line[at..].trim_start_matches([' ', '\t'])),
            (None, _) => {}
        }
    }
    (line, "")
}

impl CommandLine {
    /// Whether systemd runs it without any restriction.
    pub(super) fn is_free(&self) -> bool {
        self.signs.contains('+')
    }

    /// What was found for a program that is named without a path.
    pub(super) fn note(&self) -> Option<String> {
        let found = self.found.as_ref()?;
        let CommandLine {
            directive, program, ..
        } = self;
        Some(format!(
            "{directive}={program}: executes {found}, which systemd finds now; if that moves, run the command again"
        ))
    }

    /// The line with its directive, as it is.
    pub(super) fn as_it_is(&self) -> String {
        let name = self.name.iter().map(|name| format!(" {name}"));
        let rest = (!self.rest.is_empty()).then(|| format!(" {}", self.rest));
        let behind: String = name.chain(rest).collect();
        format!("{}={}{}{behind}", self.directive, self.signs, self.program)
    }

    /// The same under the filter.
    pub(super) fn under(&self, installer: &Installer) -> String {
        if self.is_free() {
            return self.as_it_is();
        }
        let signs = self.signs.replace('@', "");
        let escape = |word: &str| match self.signs.contains(':') {
            true => word.to_owned(),
            false => word.replace('$', "$$"),
        };
        let mut line = format!("{}={signs}{}", self.directive, installer.words);
        let found = self.found.as_deref();
        // Without a path the program is told the name as it is.
        let own_name = found.map(|_| &self.program);
        if let Some(name) = self.name.as_ref().or(own_name) {
            line.push_str(&format!(" --argv0 {name}"));
        }
        let program = found.unwrap_or(&self.program);
        line.push_str(&format!(" -- {}", escape(program)));
        if !self.rest.is_empty() {
            line.push_str(&format!(" {}", self.rest));
        }
        line
    }
}

/// A path as a word of a command line.
pub(super) fn quoted(path: &Path) -> String {
    escaped(path, &['%', '$'])
}

/// A path as a word of a list, in which no variables are looked for.
pub(super) fn listed(path: &Path) -> String {
    escaped(path, &['%'])
}

/// The bytes of a path as systemd reads them; signs that begin something to be expanded are doubled.
fn escaped(path: &Path, expanded: &[char]) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for sign in chunk.valid().chars() {
            match sign {
                '\\' | '"' => text.extend(['\\', sign]),
                _ if expanded.contains(&sign) => text.extend([sign, sign]),
                _ => text.push(sign),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-@:+%".contains(sign);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn under(value: &str) -> Result<String, &'static str> {
        let installer = Installer {
            words: "/bin/e -p /f".to_owned(),
        };
        let find = |name: &str| (name == "x").then(|| "/usr/bin/x".to_owned());
        let line = parse("ExecStart", value, &find)?;
        assert_eq!(
            line.as_it_is(),
            format!("ExecStart={value}"),
            "nothing is lost"
        );
        Ok(line.under(&installer))
    }

    #[test]
    fn the_words_of_a_line_stay_as_they_are_written() {
        for (value, expected) in [
            ("/bin/x", "/bin/e -p /f -- /bin/x"),
            (
                "/bin/x -g 'a b; c' $D ${E}",
                "/bin/e -p /f -- /bin/x -g 'a b; c' $D ${E}",
            ),
            ("-/bin/x a", "-/bin/e -p /f -- /bin/x a"),
            ("!-/bin/x", "!-/bin/e -p /f -- /bin/x"),
            ("@/bin/x name a", "/bin/e -p /f --argv0 name -- /bin/x a"),
            (
                "-@\"/bin/a x\" 'n m'",
                "-/bin/e -p /f --argv0 'n m' -- \"/bin/a x\"",
            ),
            ("@/bin/x ${N} a", "/bin/e -p /f --argv0 ${N} -- /bin/x a"),
            ("/bin/$x $x", "/bin/e -p /f -- /bin/$$x $x"),
            (":/bin/$x $x", ":/bin/e -p /f -- /bin/$x $x"),
            ("/bin/a\\x20b c", "/bin/e -p /f -- /bin/a\\x20b c"),
            ("+/bin/x a", "+/bin/x a"),
            ("x -1 $P", "/bin/e -p /f --argv0 x -- /usr/bin/x -1 $P"),
            ("-@x n a", "-/bin/e -p /f --argv0 n -- /usr/bin/x a"),
        ] {
            assert_eq!(under(value).unwrap(), format!("ExecStart={expected}"));
        }
    }

    #[test]
    fn what_would_run_something_else_is_refused() {
        for value in [
            "y",
            "bin/x",
            "\"x\"",
            "@/bin/x",
            "/bin/x a ; /bin/y b",
            "$X",
            "",
            "@/bin/x $N a",
        ] {
            let line = parse("ExecStart", value, &|name| {
                (name != "y").then(|| format!("/usr/bin/{name}"))
            });
            assert!(line.is_err(), "{value}: {line:?}");
        }
    }

    #[test]
    fn an_empty_assignment_forgets_those_before_it() {
        let assignment = |key: &str, value: &str| Assignment {
            section: "Service".to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let of_unit = |assignments: &[Assignment]| of_unit(assignments, &|_| None);
        let lines = of_unit(&[
            assignment("ExecStart", "/bin/a"),
            assignment("ExecStartPre", "/bin/b"),
            assignment("ExecStart", ""),
            assignment("ExecStart", "/bin/c"),
        ]);
        let lines: Vec<String> = lines.unwrap().iter().map(CommandLine::as_it_is).collect();
        assert_eq!(lines, ["ExecStartPre=/bin/b", "ExecStart=/bin/c"]);
        assert!(of_unit(&[assignment("ExecPaths", "/bin")]).is_ok());
        let refusal = of_unit(&[assignment("ExecReloadPost", "/bin/d")]).unwrap_err();
        assert!(refusal.starts_with("ExecReloadPost=: "), "{refusal}");
    }

    #[test]
    fn paths_are_words_whatever_they_contain() {
        let quoted = |path: &str| quoted(Path::new(path));
        assert_eq!(quoted("/etc/a@b.service.d/x"), "/etc/a@b.service.d/x");
        assert_eq!(quoted("/etc/a\\x2db"), "\"/etc/a\\\\x2db\"");
        assert_eq!(quoted("/a b/100%"), "\"/a b/100%%\"");
        let latin = Path::new(OsStr::from_bytes(b"/k\xfcrzer"));
        assert_eq!(super::quoted(latin), "\"/k\\xfcrzer\"");
        assert_eq!(listed(Path::new("/a$b")), "\"/a$b\"");
    }
}
