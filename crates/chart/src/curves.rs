//! Points and lines between two axes: the growth of one figure with another.

use crate::canvas::{Anchor, Canvas, Drawing, LEGEND_LINE, colour};
use crate::scale::{Scale, number};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;

/// A chart of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The title.
    pub title: String,
    /// The axis at the bottom.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// The curves, the lowest first.
    pub curves: Vec<Curve>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The label, with the unit.
    pub label: String,
    /// Whether the axis is logarithmic, without 0.
    pub is_log: bool,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// The points, in the order of the line. Values that are not finite are skipped.
    pub points: Vec<(f64, f64)>,
    /// The style.
    pub style: Style,
}

/// The style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A dot for each point.
    Dots,
    /// A line through the points.
    Line,
    /// Both.
    DotsAndLine,
}

impl Curves {
    /// The chart. A curve with the name of an earlier one has its colour and no separate entry in the legend, so
    /// that measured dots and a fitted line can be combined.
    pub fn draw(&self) -> Drawing {
        let names = self.names();
        let top = TOP + names.len() as f64 * LEGEND_LINE + 24.0;
        let bottom = top + HEIGHT;
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let x = scale(&self.x, points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let y = scale(&self.y, points().map(|point| point.1), bottom, top);
        let mut canvas = Canvas::new(WIDTH, bottom + 50.0);
        canvas.text("title", Anchor::Start, (10.0, 22.0), &self.title);
        canvas.legend((LEFT, TOP + 8.0), &names);
        for tick in x.ticks() {
            let place = x.place(tick);
            canvas.line("grid", (place, top), (place, bottom));
            canvas.text(
                "small",
                Anchor::Middle,
                (place, bottom + 16.0),
                &number(tick),
            );
        }
        for tick in y.ticks() {
            let place = y.place(tick);
            canvas.line("grid", (LEFT, place), (WIDTH - RIGHT, place));
            canvas.text(
                "small",
                Anchor::End,
                (LEFT - 6.0, place + 4.0),
                &number(tick),
            );
        }
        canvas.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
        canvas.line("axis", (LEFT, top), (LEFT, bottom));
        let centre = (LEFT + WIDTH - RIGHT) / 2.0;
        canvas.text("", Anchor::Middle, (centre, bottom + 38.0), &self.x.label);
        canvas.text("", Anchor::Start, (10.0, top - 10.0), &self.y.label);
        for curve in &self.curves {
            let series = names.iter().position(|name| *name == curve.name);
            draw(&mut canvas, curve, colour(series.unwrap_or(0)), (&x, &y));
        }
        canvas.finish(&self.title)
    }

    /// The names, without duplicates.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in &self.curves {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }
}

fn scale(axis: &Axis, figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
    match axis.is_log {
        true => Scale::log(figures, from, to),
        false => Scale::linear(figures, from, to),
    }
}

fn draw(canvas: &mut Canvas, curve: &Curve, colour: &str, (x, y): (&Scale, &Scale)) {
    let finite = curve
        .points
        .iter()
        .filter(|(a, b)| a.is_finite() && b.is_finite());
    let finite: Vec<&(f64, f64)> = finite.collect();
    let place = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
    if curve.style != Style::Dots {
        let points: Vec<(f64, f64)> = finite.iter().map(|point| place(point)).collect();
        canvas.polyline(colour, &points);
    }
    if curve.style != Style::Line {
        for point in finite {
            let title = format!("{}: {} at {}", curve.name, point.1, point.0);
            canvas.dot(colour, place(point), &title);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_log: bool) -> Curves {
        let axis = |label: &str| Axis {
            label: label.to_owned(),
            is_log,
        };
        let curve = |style| Curve {
            name: "time".to_owned(),
            points: vec![(0.0, 0.0), (10.0, 20.0), (100.0, f64::NAN), (1000.0, 300.0)],
            style,
        };
        Curves {
            title: "growth".to_owned(),
            x: axis("instructions"),
            y: axis("ms"),
            curves: vec![curve(Style::Dots), curve(Style::Line)],
        }
    }

    #[test]
    fn dots_and_line_of_one_name_share_a_colour_and_a_legend() {
        for is_log in [false, true] {
            let svg = chart(is_log).draw().to_string();
            assert_eq!(svg.matches("<circle").count(), 3);
            assert_eq!(svg.matches("<polyline").count(), 1);
            assert_eq!(svg.matches(">time</text>").count(), 1);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn nothing_to_show_is_still_a_chart() {
        let empty = Curves {
            curves: Vec::new(),
            ..chart(true)
        };
        assert!(empty.draw().to_string().ends_with("</svg>\n"));
    }
}
