//! Lists of words in messages.

/// The most names in a list.
const MAX_NAMES: usize = 8;

/// Names in backticks, at most eight of them; `nothing` for none.
///
/// ```
/// use tamis_diag::words::list;
/// assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
/// assert_eq!(list(["name"; 10]), "`name`, ".repeat(6) + "`name` and 3 more");
/// assert_eq!(list([""; 0]), "nothing");
/// ```
pub fn list<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names = names.into_iter().map(|name| format!("`{}`", name.as_ref()));
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    if names.len() > MAX_NAMES {
        let more = names.len() - (MAX_NAMES - 1);
        names.truncate(MAX_NAMES - 1);
        names.push(format!("{more} more"));
    }
    joined(&names, "and")
}

/// Words with commas and, before the last, this word.
///
/// ```
/// use tamis_diag::words::joined;
/// assert_eq!(joined(&["a", "b", "c"], "or"), "a, b or c");
/// ```
pub fn joined(words: &[impl AsRef<str>], last: &str) -> String {
    let comma = |words: &[_]| {
        let words = words.iter().map(|word: &_| AsRef::<str>::as_ref(word));
        words.collect::<Vec<&str>>().join(", ")
    };
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [all @ .., end] => format!("{} {last} {}", comma(all), end.as_ref()),
    }
}
