//! Text tables: names on the left, figures on the right.

use std::fmt::Write;

/// Lines of cells under a line of headings. The first and the last column are text, the others figures.
#[derive(Clone, Debug)]
pub struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        let headings = headings.iter().map(|heading| (*heading).to_owned());
        Table {
            lines: vec![headings.collect()],
        }
    }

    /// Adds a line; missing cells are empty.
    pub fn push(&mut self, mut cells: Vec<String>) {
        cells.resize(self.lines[0].len(), String::new());
        self.lines.push(cells);
    }

    /// The text, each line indented by two spaces.
    pub fn text(&self) -> String {
        let columns = self.lines[0].len();
        let width = |column: usize| {
            let cells = self.lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for line in &self.lines {
            let mut row = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let is_text = column == 0 || column + 1 == columns;
                let _ = match is_text {
                    true => write!(row, "  {cell:<width$}"),
                    false => write!(row, "  {cell:>width$}"),
                };
            }
            text += row.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other() {
        let mut table = Table::new(&["name", "n", "note"]);
        table.push(vec!["a".to_owned(), "10".to_owned(), "yes".to_owned()]);
        table.push(vec!["longer".to_owned(), "7".to_owned()]);
        let expected = "  name     n  note\n  a       10  yes\n  longer   7\n";
        assert_eq!(table.text(), expected);
    }
}
