//! Horizontal bars in groups: one figure of several subjects, side by side for several things.

use crate::canvas::{Anchor, Canvas, Drawing, LEGEND_LINE, colour, text_width};
use crate::scale::{Scale, number};

const WIDTH: f64 = 860.0;
const BAR_HEIGHT: f64 = 13.0;
const GROUP_GAP: f64 = 12.0;
const TOP: f64 = 40.0;
/// The room for a group's name; longer ones are cut.
const MAX_NAME_CHARS: usize = 40;
/// The room for the figure after the longest bar.
const FIGURE_WIDTH: f64 = 60.0;

/// A chart of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// The unit of all figures.
    pub unit: String,
    /// The names of the subjects, in the order of each group's bars.
    pub series: Vec<String>,
    /// The groups, from the top.
    pub groups: Vec<Group>,
}

/// A group of compared bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// One bar per series; the last ones may be missing.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its end; it begins at 0.
    pub value: f64,
    /// A marked figure, for instance a median on a bar of minima.
    pub mark: Option<f64>,
}

impl Bars {
    /// The chart.
    pub fn draw(&self) -> Drawing {
        let height = |group: &Group| group.bars.len() as f64 * BAR_HEIGHT + GROUP_GAP;
        let legend_height = self.series.len() as f64 * LEGEND_LINE;
        let top = TOP + legend_height + 8.0;
        let bottom = top + self.groups.iter().map(height).sum::<f64>();
        let names: Vec<String> = self.groups.iter().map(|group| cut(&group.name)).collect();
        let widths = names.iter().map(|name| text_width(name));
        let left = widths.fold(40.0, f64::max) + 16.0;
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let figures = bars().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
        let scale = Scale::linear(figures, left, WIDTH - FIGURE_WIDTH);
        let mut canvas = Canvas::new(WIDTH, bottom + 30.0);
        canvas.text("title", Anchor::Start, (10.0, 22.0), &self.title);
        let series: Vec<&str> = self.series.iter().map(String::as_str).collect();
        canvas.legend((10.0, TOP + 8.0), &series);
        for tick in scale.ticks() {
            let x = scale.place(tick);
            canvas.line("grid", (x, top - 4.0), (x, bottom));
            let text = format!("{} {}", number(tick), self.unit);
            canvas.text("small", Anchor::Middle, (x, bottom + 16.0), &text);
        }
        let mut y = top;
        for (group, name) in self.groups.iter().zip(&names) {
            let middle = y + group.bars.len() as f64 * BAR_HEIGHT / 2.0 + 4.0;
            canvas.text("", Anchor::End, (left - 8.0, middle), name);
            for (series, bar) in group.bars.iter().enumerate() {
                self.bar(&mut canvas, &scale, y, (series, *bar), &group.name);
                y += BAR_HEIGHT;
            }
            y += GROUP_GAP;
        }
        let zero = scale.place(0.0);
        canvas.line("axis", (zero, top - 4.0), (zero, bottom));
        canvas.finish(&self.title)
    }

    fn bar(
        &self,
        canvas: &mut Canvas,
        scale: &Scale,
        y: f64,
        (series, bar): (usize, Bar),
        group: &str,
    ) {
        let (zero, end) = (scale.place(0.0), scale.place(bar.value));
        let name = self.series.get(series).map_or("", String::as_str);
        let title = format!("{group}, {name}: {:.1} {}", bar.value, self.unit);
        let size = ((end - zero).abs(), BAR_HEIGHT - 2.0);
        canvas.bar(colour(series), (zero.min(end), y), size, &title);
        let mut right = zero.max(end);
        if let Some(mark) = bar.mark {
            let x = scale.place(mark);
            canvas.line("mark", (x, y), (x, y + BAR_HEIGHT - 2.0));
            right = right.max(x);
        }
        let text = figure(bar.value);
        let place = (right + 5.0, y + BAR_HEIGHT - 3.0);
        canvas.text("small", Anchor::Start, place, &text);
    }
}

/// A figure with two significant digits, or a decimal.
fn figure(value: f64) -> String {
    match value.abs() < 0.95 {
        true => format!("{value:.2}"),
        false => format!("{value:.1}"),
    }
}

/// A name that fits beside the bars.
fn cut(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MAX_NAME_CHARS - 1).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(name: &str, value: f64) -> String {
        let bars = vec![Bar {
            value,
            mark: Some(value + 1.0),
        }];
        Bars {
            title: "A <b> & \"c\"".to_owned(),
            unit: "ns".to_owned(),
            series: vec!["one".to_owned()],
            groups: vec![Group {
                name: name.to_owned(),
                bars,
            }],
        }
        .draw()
        .to_string()
    }

    #[test]
    fn names_can_hold_anything() {
        let svg = chart("open(\"<\u{1}>\")", 3.0);
        assert!(svg.contains("A &lt;b&gt; &amp; &quot;c&quot;"));
        assert!(!svg.contains('\u{1}'));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn a_bar_below_zero_ends_at_the_axis_from_the_left() {
        let attribute = |line: &str, name: &str| -> f64 {
            let text = line.split_once(&format!(" {name}=\"")).unwrap().1;
            text.split('"').next().unwrap().parse().unwrap()
        };
        for value in [-4.0, 4.0] {
            let svg = chart("x", value);
            let bar = svg.lines().rfind(|line| line.starts_with("<rect fill"));
            let axis = svg.lines().find(|line| line.contains("class=\"axis\""));
            let (left, width) = (
                attribute(bar.unwrap(), "x"),
                attribute(bar.unwrap(), "width"),
            );
            let at_axis = if value < 0.0 { left + width } else { left };
            assert!(width > 1.0);
            assert!(
                (at_axis - attribute(axis.unwrap(), "x1")).abs() < 0.2,
                "{svg}"
            );
        }
    }
}
