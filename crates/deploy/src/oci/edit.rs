//! Setting members of a JSON document without changing the rest of its text.
//!
//! A value is replaced in place. A new member is added after the last one of its object, on a line of its own with
//! their indentation if they have lines of their own.

use tamis_diag::document::{Object, Value};
use tamis_diag::json::{is_alike_in_go, parse_unlimited};

/// The default indentation.
const INDENT: &str = "  ";

/// The document with a value at a path of members; missing objects are created.
///
/// # Errors
/// If the document isn't JSON, or a member on the path isn't an object.
pub(super) fn with_member(
    text: &str,
    path: &[&str],
    value: &serde_json::Value,
) -> Result<String, String> {
    let document = parse_unlimited(text).map_err(|error| error.in_text(text))?;
    let unit = unit(text);
    let mut current = document.root();
    for (depth, key) in path.iter().enumerate() {
        let Some(object) = current.as_object() else {
            return Err(match depth {
                0 => "it is no object".to_owned(),
                _ => format!("`{}` is no object", path[..depth].join(".")),
            });
        };
        match only_member(object, key)? {
            Some(value) => current = value,
            None => return Ok(with_added(text, object, &path[depth..], value, &unit)),
        }
    }
    let range = current.range();
    let indent = indent_at(text, range.start);
    Ok([
        &text[..range.start],
        &printed(value, &unit, indent),
        &text[range.end..],
    ]
    .concat())
}

/// The document with more elements at the end of the list at a path of members. The elements are JSON texts, indented by
/// two spaces.
///
/// # Errors
/// If the document isn't JSON, or has no list there.
pub(super) fn with_elements(
    text: &str,
    path: &[&str],
    elements: &[String],
) -> Result<String, String> {
    let document = parse_unlimited(text).map_err(|error| error.in_text(text))?;
    let unit = unit(text);
    let mut current = document.root();
    for (depth, key) in path.iter().enumerate() {
        let member = current.as_object().map(|object| only_member(object, key));
        let missing = || format!("`{}` is missing", path[..=depth].join("."));
        current = member.transpose()?.flatten().ok_or_else(missing)?;
    }
    let Some(list) = current.as_array() else {
        return Err(format!("`{}` is no list", path.join(".")));
    };
    let (start, end) = (list.range().start, list.range().end);
    let outer = indent_at(text, start);
    let (at, before, between, after) = match list.elements().last() {
        Some(last) => {
            let own = last.range();
            let is_in_line = !text[start..own.start].contains('\n');
            let between = match is_in_line {
                true => ", ".to_owned(),
                false => format!(",\n{}", indent_at(text, own.start)),
            };
            (own.end, between.clone(), between, &text[own.end..])
        }
        None => {
            let between = format!(",\n{outer}{unit}");
            let before = between[1..].to_owned();
            (start + 1, before, between, &text[end - 1..])
        }
    };
    let indent = between.rsplit('\n').next().unwrap_or_default();
    let indent = indent.trim_start_matches(", ");
    let added: Vec<String> = elements
        .iter()
        .map(|element| reindented(element, &unit, indent))
        .collect();
    let closing = match list.is_empty() {
        true => format!("\n{outer}"),
        false => String::new(),
    };
    Ok([&text[..at], &before, &added.join(&between), &closing, after].concat())
}

/// The member of an object that all readers select: unique, also without regard to case, which readers written in Go
/// ignore.
fn only_member<'d>(object: Object<'d>, key: &str) -> Result<Option<Value<'d>>, String> {
    let mut alike = object.members().filter(|own| is_alike_in_go(own.name, key));
    match (alike.next(), alike.next()) {
        (None, _) => Ok(None),
        (Some(only), None) if only.name == key => Ok(Some(only.value)),
        (Some(other), None) => Err(format!(
            "some runtimes read `{}` as `{key}`, others ignore it",
            other.name
        )),
        (Some(_), Some(_)) => Err(format!("`{key}` is given twice")),
    }
}

/// The document with a new member, and the missing objects around its value.
fn with_added(
    text: &str,
    object: Object<'_>,
    path: &[&str],
    value: &serde_json::Value,
    unit: &str,
) -> String {
    let [key, inner @ ..] = path else {
        return text.to_owned();
    };
    let wrap = |value, key: &&str| serde_json::json!({ *key: value });
    let value = inner.iter().rev().fold(value.clone(), wrap);
    let key = serde_json::Value::from(*key);
    let (start, end) = (object.range().start, object.range().end);
    let (first, last) = (object.members().next(), object.members().last());
    let outer = indent_at(text, start);
    let (at, before, after) = match (first, last) {
        (Some(first), Some(last)) => {
            let is_in_line = !text[start..first.name_range.start].contains('\n');
            let indent = indent_at(text, first.name_range.start);
            let before = match is_in_line {
                true => ", ".to_owned(),
                false => format!(",\n{indent}"),
            };
            (last.value.range().end, before, String::new())
        }
        _ => {
            let before = format!("\n{outer}{unit}");
            (start + 1, before, format!("\n{outer}"))
        }
    };
    let indent = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .trim_start_matches(", ");
    let member = format!("{key}: {}", printed(&value, unit, indent));
    // An empty object may contain white space.
    let rest = match first.is_none() {
        true => &text[end - 1..],
        false => &text[at..],
    };
    [&text[..at], &before, &member, &after, rest].concat()
}

/// A value in several lines; all but the first are indented.
fn printed(value: &serde_json::Value, unit: &str, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    reindented(&text, unit, indent)
}

/// A JSON text with two spaces a level, in this indentation; all lines but the first are indented.
fn reindented(text: &str, unit: &str, indent: &str) -> String {
    let mut lines = text.lines();
    let mut result = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let content = line.trim_start();
        let depth = (line.len() - content.len()) / 2;
        result.push_str(&format!("\n{indent}{}{content}", unit.repeat(depth)));
    }
    result
}

/// A value of a text, without the indentation of its first line.
pub(super) fn dedented(text: &str, value: Value<'_>) -> String {
    let range = value.range();
    let indent = indent_at(text, range.start);
    let lines = text[range.start..range.end].split('\n');
    let lines = lines.map(|line| line.strip_prefix(indent).unwrap_or(line));
    lines.collect::<Vec<&str>>().join("\n")
}

/// The indentation of a position's line.
fn indent_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

/// The indentation of the first indented line.
fn unit(text: &str) -> String {
    let indents = text
        .lines()
        .map(|line| &line[..line.len() - line.trim_start().len()]);
    let mut indents = indents.filter(|indent| !indent.is_empty());
    indents.next().unwrap_or(INDENT).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(text: &str, path: &[&str], value: &serde_json::Value) -> String {
        let edited = with_member(text, path, value).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&edited).expect("it is JSON");
        let pointer = format!("/{}", path.join("/"));
        assert_eq!(parsed.pointer(&pointer), Some(value), "{edited}");
        edited
    }

    #[test]
    fn the_rest_of_the_text_stays_as_it_is() {
        let text =
            "{\n\t\"a\" : 1,\n\t\"linux\": {\n\t\t\"seccomp\": {\"x\": 2} ,\n\t\t\"b\":3 }\n}\n";
        assert_eq!(
            set(text, &["linux", "seccomp"], &json!({"y": 4})),
            "{\n\t\"a\" : 1,\n\t\"linux\": {\n\t\t\"seccomp\": {\n\t\t\t\"y\": 4\n\t\t} ,\n\t\t\"b\":3 }\n}\n"
        );
        assert_eq!(
            set(text, &["annotations", "k"], &json!("v")),
            "{\n\t\"a\" : 1,\n\t\"linux\": {\n\t\t\"seccomp\": {\"x\": 2} ,\n\t\t\"b\":3 },\n\t\"annotations\": {\n\t\t\"k\": \"v\"\n\t}\n}\n"
        );
    }

    #[test]
    fn objects_that_are_empty_missing_or_in_one_line_get_the_member() {
        for text in [
            "{}",
            "{ }\n",
            "{\"linux\":{}}",
            "{\"linux\": {\n}}",
            "{\"a\": 1}",
            "{\"linux\": {\"a\": 1}}",
        ] {
            set(text, &["linux", "seccomp"], &json!({"x": [1, {"y": 2}]}));
        }
    }

    #[test]
    fn elements_are_added_in_the_form_of_the_list() {
        let element = ["{\n  \"b\": [2]\n}".to_owned()];
        let cases = [
            (
                "{\n\t\"a\": [\n\t\t1\n\t]\n}",
                "{\n\t\"a\": [\n\t\t1,\n\t\t{\n\t\t\t\"b\": [2]\n\t\t}\n\t]\n}",
            ),
            ("{\"a\": [1]}", "{\"a\": [1, {\n  \"b\": [2]\n}]}"),
            ("{\"a\": [ ]}", "{\"a\": [\n  {\n    \"b\": [2]\n  }\n]}"),
        ];
        for (text, expected) in cases {
            assert_eq!(with_elements(text, &["a"], &element).unwrap(), expected);
        }
        for text in [
            "{}",
            "{\"a\": 1}",
            "{\"A\": []}",
            "{\"a\": [], \"a\": []}",
            "[]",
        ] {
            assert!(with_elements(text, &["a"], &element).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_or_read_in_two_ways_is_refused() {
        for (text, path) in [
            ("[]", ["a", "b"]),
            ("{\"a\": 1}", ["a", "b"]),
            ("{,}", ["a", "b"]),
            ("// x\n{}", ["a", "b"]),
            ("{\"a\": {}, \"a\": {}}", ["a", "b"]),
            ("{\"a\": {\"B\": 1}}", ["a", "b"]),
            ("{\"a\": {\"K\u{17f}\": 1}}", ["a", "ks"]),
            ("{\"a\": {\"\u{212a}s\": 1, \"ks\": 1}}", ["a", "ks"]),
            ("{\"linu\u{445}\": {}, \"linux\": 1}", ["linux", "b"]),
        ] {
            assert!(with_member(text, &path, &json!(1)).is_err(), "{text}");
        }
    }
}
