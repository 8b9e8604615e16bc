//! From figures to positions: linear and logarithmic axes with round numbers.

/// The approximate count of numbers on an axis.
const TICKS: f64 = 6.0;

/// An axis: its range of figures and of positions.
pub(crate) struct Scale {
    first: f64,
    last: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    /// A linear axis with all figures and 0 on it, from one position to another.
    pub(crate) fn linear(figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (least, most) = range(figures, 0.0);
        let most = if most > least { most } else { least + 1.0 };
        let step = step(most - least);
        Scale {
            first: (least / step).floor() * step,
            last: (most / step).ceil() * step,
            from,
            to,
            is_log: false,
        }
    }

    /// A logarithmic axis from one power of ten to another; figures that aren't positive are at its beginning.
    pub(crate) fn log(figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let is_shown = |figure: &f64| figure.is_finite() && *figure > 0.0;
        let mut positive = figures.filter(is_shown).peekable();
        let start = positive.peek().copied().unwrap_or(1.0);
        let (least, most) = range(positive, start);
        let first = least.log10().floor();
        Scale {
            first,
            last: most.log10().ceil().max(first + 1.0),
            from,
            to,
            is_log: true,
        }
    }

    /// The position of a figure.
    pub(crate) fn place(&self, figure: f64) -> f64 {
        let figure = match self.is_log {
            true if figure > 0.0 => figure.log10(),
            true => self.first,
            false => figure,
        };
        let share = (figure - self.first) / (self.last - self.first);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The figures to write along the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let step = match self.is_log {
            true => 1.0,
            false => step(self.last - self.first),
        };
        let count = ((self.last - self.first) / step).round() as usize;
        let values = (0..=count).map(|index| self.first + index as f64 * step);
        match self.is_log {
            true => values.map(|exponent| 10_f64.powf(exponent)).collect(),
            false => values.collect(),
        }
    }
}

/// The minimum and maximum of the figures and one more; values that are not numbers are skipped.
fn range(figures: impl Iterator<Item = f64>, one: f64) -> (f64, f64) {
    figures
        .filter(|figure| figure.is_finite())
        .fold((one, one), |(least, most), figure| {
            (least.min(figure), most.max(figure))
        })
}

/// A round distance of numbers on an axis: 1, 2 or 5 times a power of ten.
fn step(range: f64) -> f64 {
    let rough = range / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A figure on an axis: the fewest digits that distinguish the ticks.
pub(crate) fn number(figure: f64) -> String {
    let size = figure.abs();
    let (scaled, suffix) = match size {
        _ if size >= 1e6 => (figure / 1e6, "M"),
        _ if size >= 1e4 => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let decimals = match scaled {
        _ if (scaled - scaled.round()).abs() < 1e-9 => 0,
        _ if size < 0.1 => 3,
        _ if size < 1.0 => 2,
        _ => 1,
    };
    format!("{scaled:.decimals$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_numbers_that_enclose_all_figures() {
        let axis = |figures: &[f64]| Scale::linear(figures.iter().copied(), 0.0, 100.0);
        assert_eq!(
            axis(&[3.0, 47.0]).ticks(),
            [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
        );
        let below = axis(&[-7.0, 18.0]).ticks();
        assert!(
            below[0] <= -7.0 && *below.last().unwrap() >= 18.0,
            "{below:?}"
        );
        let log = Scale::log([20.0, 4000.0].into_iter(), 0.0, 100.0).ticks();
        for (tick, expected) in log.iter().zip([10.0, 100.0, 1000.0, 10000.0]) {
            assert!((tick / expected - 1.0).abs() < 1e-9, "{log:?}");
        }
    }

    #[test]
    fn neighbouring_numbers_look_different() {
        for most in [0.3, 0.7, 3.0, 48.0, 900.0, 12_500.0, 1_300_000.0, 7e7] {
            let ticks = Scale::linear([most].into_iter(), 0.0, 1.0).ticks();
            let numbers: Vec<String> = ticks.iter().map(|tick| number(*tick)).collect();
            assert!(
                numbers.windows(2).all(|pair| pair[0] != pair[1]),
                "{numbers:?}"
            );
        }
        assert_eq!(number(1_500_000.0), "1.5M");
        assert_eq!(number(-20.0), "-20");
        assert_eq!(number(0.05), "0.050");
    }

    #[test]
    fn places_are_in_order_and_inside_whatever_the_figures() {
        for figures in [
            vec![],
            vec![0.0],
            vec![5.0, 5.0],
            vec![-3.0, f64::NAN, 1e9],
            vec![f64::INFINITY, 2.0],
        ] {
            let lines = figures.iter().copied();
            for scale in [
                Scale::linear(lines.clone(), 10.0, 90.0),
                Scale::log(lines.clone(), 10.0, 90.0),
            ] {
                let places: Vec<f64> = scale.ticks().iter().map(|t| scale.place(*t)).collect();
                assert!(places.is_sorted(), "{figures:?}: {places:?}");
                assert!(places.iter().all(|place| (10.0..=90.0).contains(place)));
            }
        }
    }
}
