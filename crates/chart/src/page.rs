//! An HTML page with charts and their table.

use std::fmt::Write;

use crate::canvas::{Drawing, escape};

/// A page with charts and a text below them in a fixed-width font, without other files and scripts.
pub fn page(title: &str, charts: &[Drawing], text: &str) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body{{font-family:sans-serif;margin:1em 2em}}svg{{max-width:100%;height:auto}}\
         pre{{font-size:12px;overflow-x:auto}}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    for chart in charts {
        let _ = write!(page, "<p>\n{chart}</p>\n");
    }
    let text = escape(text);
    let _ = write!(page, "<pre>\n{text}</pre>\n</body>\n</html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_shown_and_not_interpreted() {
        let chart = Drawing::column("none", &[]);
        let page = page("x < y", &[chart], "a & b\n");
        assert!(page.contains("<h1>x &lt; y</h1>") && page.contains("a &amp; b\n"));
        assert!(page.contains("<svg ") && page.contains("<title>none</title>"));
    }
}
