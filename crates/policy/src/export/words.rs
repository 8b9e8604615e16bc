//! Lists in messages.

/// The most names in a list.
const MAX_NAMED: usize = 5;

/// `a`, `a and b`, `a, b, c, d and 7 more`, each in quotes.
pub fn list(names: &[&str]) -> String {
    let quoted =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("`{name}`")).collect() };
    match names {
        [] => "nothing".to_owned(),
        [name] => format!("`{name}`"),
        [rest @ .., last] if names.len() <= MAX_NAMED => {
            format!("{} and `{last}`", quoted(rest).join(", "))
        }
        _ => {
            let shown = MAX_NAMED - 1;
            let named = quoted(&names[..shown]).join(", ");
            format!("{named} and {} more", names.len() - shown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(&["a"]), "`a`");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
        let many = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(list(&many), "`a`, `b`, `c`, `d` and 2 more");
    }
}
