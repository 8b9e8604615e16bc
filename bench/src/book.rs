//! Updates of measured tables in the pages of the book.
//!
//! A table is identified by its beginning: in a fenced block by its first line up to the colon, in Markdown by its
//! head. It ends at the next empty line or fence. Text around tables, and tables that were not measured, do not
//! change; a measured table that is not in the page is ignored.

use std::fs;
use std::io;

use tamis_testkit::corpus::repository;

/// The option by which a measurement writes its tables into the book.
pub const OPTION: &str = "--book";

/// Writes tables into a page, such as `peers.md`; returns how many of them it has.
///
/// # Errors
/// If the page can't be read or written.
pub fn put(page: &str, tables: &[String]) -> io::Result<usize> {
    let path = repository().join("docs/book").join(page);
    let mut text = fs::read_to_string(&path)?;
    let mut count = 0;
    for table in tables {
        if let Some(changed) = with_table(&text, table) {
            text = changed;
            count += 1;
        }
    }
    fs::write(path, text)?;
    Ok(count)
}

/// The same, with a message on standard error.
pub fn put_and_tell(page: &str, tables: &[String]) {
    match put(page, tables) {
        Ok(count) => eprintln!("docs/book/{page}: tables put there: {count}"),
        Err(error) => eprintln!("docs/book/{page}: {error}"),
    }
}

/// The page with this table instead of the one with the same beginning, if there is one.
fn with_table(page: &str, table: &str) -> Option<String> {
    let table = table.trim_end();
    let begins = beginning(table.lines().next()?);
    let lines: Vec<&str> = page.lines().collect();
    let is_end = |line: &str| line.is_empty() || line.starts_with("```");
    let first = lines.iter().position(|line| beginning(line) == begins)?;
    let rest = &lines[first..];
    let length = rest
        .iter()
        .position(|line| is_end(line))
        .unwrap_or(rest.len());
    let parts = [
        &lines[..first].join("\n"),
        table,
        &rest[length..].join("\n"),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    Some(parts.collect::<Vec<_>>().join("\n") + "\n")
}

/// The identification of a table.
fn beginning(line: &str) -> &str {
    match line.starts_with('|') {
        true => line,
        false => line.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Page

| pair | ms |
|---|---:|
| old | 1 |

Words.

```text
first: 3 calls
  old

second: 4 calls
  stays
```
";

    #[test]
    fn a_table_takes_the_place_of_the_one_that_begins_alike() {
        let markdown = with_table(
            PAGE,
            "| pair | ms |\n|---|---:|\n| new | 2 |\n| more | 3 |\n",
        );
        let expected = PAGE.replace("| old | 1 |", "| new | 2 |\n| more | 3 |");
        assert_eq!(markdown, Some(expected));
        let block = with_table(PAGE, "first: 5 calls\n  new\n\n");
        let expected = PAGE.replace("first: 3 calls\n  old", "first: 5 calls\n  new");
        assert_eq!(block, Some(expected));
        let last = with_table(PAGE, "second: 4 calls\n  new");
        assert_eq!(last, Some(PAGE.replace("stays", "new")));
    }

    #[test]
    fn a_table_that_the_page_has_not_is_left_out() {
        assert_eq!(with_table(PAGE, "third: 1 call\n  new"), None);
        assert_eq!(with_table(PAGE, "| pair | us |\n"), None);
    }
}
