//! Linear regression of measured points, with the residual.

use tamis_report::gap::{Fit, Point};

/// The line through points `(x, ns)`. With fewer than two different `x` it is level.
pub(super) fn fit(unit: &'static str, points: &[(f64, f64)]) -> Fit {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let product: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let slope_ns = if square > 0.0 { product / square } else { 0.0 };
    let intercept_ns = mean_y - slope_ns * mean_x;
    let fitted = points.iter().map(|(x, y)| Point {
        x: *x,
        measured_ns: *y,
        fitted_ns: intercept_ns + slope_ns * x,
    });
    let fitted: Vec<Point> = fitted.collect();
    let left = |point: &Point| (point.measured_ns - point.fitted_ns).powi(2);
    let left: f64 = fitted.iter().map(left).sum();
    let degrees = (count - 2.0).max(1.0);
    Fit {
        unit,
        intercept_ns,
        slope_ns,
        standard_error_ns: match square > 0.0 {
            true => (left / degrees / square).sqrt(),
            false => 0.0,
        },
        residual_ns: (left / count).sqrt(),
        points: fitted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn points_on_a_line_give_the_line_and_nothing_is_left() {
        let points = [0.0, 4.0, 10.0].map(|x| (x, 3.0 + 0.5 * x));
        let line = fit("insns", &points);
        assert!(is_near(line.intercept_ns, 3.0) && is_near(line.slope_ns, 0.5));
        assert!(is_near(line.residual_ns, 0.0) && is_near(line.standard_error_ns, 0.0));
    }

    #[test]
    fn what_is_left_makes_the_slope_uncertain() {
        // By hand: the line is 1 + 2x, with the residuals -1, 2, -1.
        let line = fit("insns", &[(0.0, 0.0), (1.0, 5.0), (2.0, 4.0)]);
        assert!(is_near(line.intercept_ns, 1.0) && is_near(line.slope_ns, 2.0));
        assert!(is_near(line.residual_ns, 2.0_f64.sqrt()));
        assert!(is_near(line.standard_error_ns, 3.0_f64.sqrt()));
    }

    #[test]
    fn one_point_or_none_is_level() {
        assert!(is_near(fit("insns", &[(3.0, 7.0)]).intercept_ns, 7.0));
        assert!(is_near(fit("insns", &[]).slope_ns, 0.0));
    }
}
