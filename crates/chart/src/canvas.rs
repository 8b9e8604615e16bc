//! A canvas for SVG: lines, rectangles, circles and text, each with a class of the style sheet.

use std::fmt::{self, Write};

/// The colours of the series, distinguishable by colour-blind people (Okabe and Ito).
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000",
];

/// The common style of charts; the background makes them readable on dark pages.
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title{font-size:15px;font-weight:bold}\
    .small{font-size:11px;fill:#555}.axis{stroke:#888}.grid{stroke:#ddd}.mark{stroke:#222;stroke-width:2}\
    .curve{fill:none;stroke-width:1.5}";

/// The approximate width of a character.
const CHAR_WIDTH: f64 = 7.0;

/// The anchor of a text in SVG.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// An unfinished SVG.
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

/// The colour of a series; after eight they repeat.
pub(crate) fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// The approximate width of a text.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR_WIDTH
}

/// A text inside an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML allows no other control characters, not even escaped.
            c if c.is_control() && c != '\n' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

impl Canvas {
    pub(crate) fn new(width: f64, height: f64) -> Canvas {
        Canvas {
            width,
            height,
            body: String::new(),
        }
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.element(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A rectangle with a tooltip.
    pub(crate) fn bar(&mut self, colour: &str, corner: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let title = escape(title);
        self.element(format_args!(
            r#"<rect fill="{colour}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{title}</title></rect>"#
        ));
    }

    /// A dot with a tooltip.
    pub(crate) fn dot(&mut self, colour: &str, (x, y): (f64, f64), title: &str) {
        let title = escape(title);
        self.element(format_args!(
            r#"<circle fill="{colour}" cx="{x:.1}" cy="{y:.1}" r="3"><title>{title}</title></circle>"#
        ));
    }

    pub(crate) fn polyline(&mut self, colour: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        self.element(format_args!(
            r#"<polyline class="curve" stroke="{colour}" points="{points}"/>"#
        ));
    }

    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.element(format_args!(
            r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    /// The names of series with their colours, from a position downwards, one per line.
    pub(crate) fn legend(&mut self, (x, y): (f64, f64), names: &[&str]) {
        for (series, name) in names.iter().enumerate() {
            let y = y + series as f64 * LEGEND_LINE;
            self.bar(colour(series), (x, y - 9.0), (10.0, 10.0), name);
            self.text("small", Anchor::Start, (x + 15.0, y), name);
        }
    }

    fn element(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }

    /// The drawing; `title` is for screen readers.
    pub(crate) fn finish(self, title: &str) -> Drawing {
        Drawing {
            width: self.width,
            height: self.height,
            title: title.to_owned(),
            body: self.body,
        }
    }
}

/// A finished chart. As text it is a complete SVG with a final newline.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    width: f64,
    height: f64,
    title: String,
    /// The elements, one per line.
    body: String,
}

impl Drawing {
    /// Several drawings as one, from the top down.
    pub fn column(title: &str, drawings: &[Drawing]) -> Drawing {
        let mut column = Canvas::new(0.0, 0.0);
        for drawing in drawings {
            column.width = column.width.max(drawing.width);
            let (top, body) = (column.height, &drawing.body);
            column.element(format_args!(
                "<g transform=\"translate(0 {top:.0})\">\n{body}</g>"
            ));
            column.height += drawing.height.ceil();
        }
        column.finish(title)
    }
}

impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Drawing {
            width,
            height,
            title,
            body,
        } = self;
        let title = escape(title);
        write!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}

/// The distance of the lines of a legend.
pub(crate) const LEGEND_LINE: f64 = 17.0;
