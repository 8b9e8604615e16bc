//! A line chart with logarithmic axes, as SVG.

/// A named line through points, all of which are above zero.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 220.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 6] = [
    "#1b6ca8", "#c1440e", "#2e8b57", "#8e44ad", "#b8860b", "#555555",
];

/// One axis: whole powers of ten between which everything lies.
struct Axis {
    from: f64,
    to: f64,
    start: f64,
    length: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, start: f64, length: f64) -> Axis {
        let logs = values.map(f64::log10);
        let (low, high) = logs.fold((f64::MAX, f64::MIN), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        Axis {
            from: low.floor(),
            to: high.ceil().max(low.floor() + 1.0),
            start,
            length,
        }
    }

    fn place(&self, value: f64) -> f64 {
        self.start + self.length * (value.log10() - self.from) / (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.from as i32..=self.to as i32).map(|power| 10_f64.powi(power))
    }
}

/// The chart. A dashed line through its lower left corner shows proportional growth.
pub fn log_log(title: &str, x_title: &str, y_title: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let x = Axis::new(points().map(|point| point.0), LEFT, WIDTH - LEFT - RIGHT);
    let y = Axis::new(
        points().map(|point| point.1),
        HEIGHT - BOTTOM,
        TOP + BOTTOM - HEIGHT,
    );
    let mut elements = vec![
        text(LEFT, TOP - 20.0, "start", title),
        text(
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 12.0,
            "middle",
            x_title,
        ),
        text(LEFT, TOP - 6.0, "end", y_title),
    ];
    elements.extend(grid(&x, &y));
    for (index, series) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
        let places = series.points.iter();
        let places = places.map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1)));
        let places: Vec<String> = places.collect();
        elements.push(format!(
            "<polyline points=\"{}\" {style}/>",
            places.join(" ")
        ));
        let (right, at) = (WIDTH - RIGHT, TOP + 10.0 + 20.0 * index as f64);
        elements.push(line((right + 12.0, at), (right + 34.0, at), &style));
        elements.push(text(right + 40.0, at + 4.0, "start", &series.name));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}\n</svg>\n",
        elements.join("\n")
    )
}

/// Lines at the powers of ten, and the one that shows proportional growth.
fn grid(x: &Axis, y: &Axis) -> Vec<String> {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let grey = "stroke=\"#ddd\"";
    let mut elements = Vec::new();
    for tick in x.ticks() {
        let at = x.place(tick);
        elements.push(line((at, TOP), (at, bottom), grey));
        elements.push(text(at, bottom + 16.0, "middle", &tick.to_string()));
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        elements.push(line((LEFT, at), (right, at), grey));
        elements.push(text(LEFT - 6.0, at + 4.0, "end", &tick.to_string()));
    }
    let factor = 10_f64.powf((x.to - x.from).min(y.to - y.from));
    let end = (x.ticks().next(), y.ticks().next());
    if let (Some(least_x), Some(least_y)) = end {
        let far = (x.place(least_x * factor), y.place(least_y * factor));
        elements.push(line(
            (LEFT, bottom),
            far,
            "stroke=\"#999\" stroke-dasharray=\"5 4\"",
        ));
    }
    elements
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let axis = Axis::new([20.0, 3000.0].into_iter(), 100.0, 300.0);
        assert_eq!((axis.from, axis.to), (1.0, 4.0));
        for (value, place) in [(10.0, 100.0), (100.0, 200.0), (1000.0, 300.0)] {
            assert!((axis.place(value) - place).abs() < 1e-9);
        }
    }

    #[test]
    fn every_series_has_a_line_and_a_name() {
        let series = ["one", "two"].map(|name| Series {
            name: name.to_owned(),
            points: vec![(10.0, 0.5), (100.0, 4.0)],
        });
        let svg = log_log("title", "rules", "ms", &series);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">one<") && svg.contains(">two<"));
    }
}
