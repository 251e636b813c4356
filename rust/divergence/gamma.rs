//! Ratios of gamma functions and their logarithmic derivative, without differences of lgamma.

use crate::error::Error;

/// `B_2i / (2i (2i - 1))`: Stirling's series of ln Gamma in odd powers of 1/x.
///
/// Source: Abramowitz and Stegun (1964), 6.1.41.
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// From here on the first term left out of either series is below 2^-57 of the sum.
const LARGE: f64 = 10.0;

/// From 2^53 on adding 1 may change nothing.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Whole numbers up to this give a product.
const LONGEST_PRODUCT: f64 = 16.0;

/// ln Gamma(x + b) - ln Gamma(x) for x > 0 and x + b > 0; NaN elsewhere.
///
/// The error is a few units in the last place of the ratio, or of b times the largest logarithm on
/// the way where that is more, so it vanishes with b. Whole b of at most 16 give the logarithm of a product; else both arguments are
/// moved up to 10 by Gamma(x + 1) = x Gamma(x), and Stirling's series are subtracted term by term.
#[must_use]
pub fn log_gamma_ratio(x: f64, b: f64) -> f64 {
    if !(x > 0.0 && x + b > 0.0 && x.is_finite() && b.is_finite()) {
        return f64::NAN;
    }
    if b == b.trunc() && b.abs() <= LONGEST_PRODUCT {
        return if b < 0.0 { -log_product(x + b, -b) } else { log_product(x, b) };
    }
    let (mut low, mut shift) = (x, 0.0);
    // At most 11 steps: below 2^53 each moves both arguments. From there on x + b is at least 1 and
    // ln Gamma(x) a multiple of 64: Stirling's error of less than 0.1 vanishes.
    while low.min(low + b) < LARGE && low < WHOLE {
        shift += log_ratio(low, b);
        low += 1.0;
    }
    let (high, log) = (low + b, log_ratio(low, b));
    // The difference is b^2 / (2 low), nothing beside b ln(high), where b/low has lost its digits.
    let small = (b / low).abs() < f64::MIN_POSITIVE;
    let rest = if small { 0.0 } else { (low - 0.5) * log - b };
    rest + b * high.ln() + stirling_difference(low, high, b) - shift
}

/// ln((x + b) / x).
fn log_ratio(x: f64, b: f64) -> f64 {
    let relative = b / x;
    if relative == f64::INFINITY {
        (x + b).ln() - x.ln()
    } else if relative < -0.5 {
        // The sum inside ln_1p would lose what x + b still has.
        ((x + b) / x).ln()
    } else {
        relative.ln_1p()
    }
}

/// [`log_gamma_ratio`] at every x.
///
/// # Errors
///
/// An x at which it is not defined.
pub fn log_gamma_ratios(x: &[f64], b: f64) -> Result<Vec<f64>, Error> {
    let ratios: Vec<f64> = x.iter().map(|&x| log_gamma_ratio(x, b)).collect();
    match x.iter().zip(&ratios).find(|(_, ratio)| ratio.is_nan()) {
        Some((x, _)) => Err(Error::invalid("x", "positive and above -b", x)),
        None => Ok(ratios),
    }
}

/// ln of x (x + 1) ... (x + b - 1) for a whole b >= 0.
fn log_product(x: f64, b: f64) -> f64 {
    let (mut sum, mut product, mut i) = (0.0, 1.0_f64, 0.0);
    while i < b {
        if !(1e-150..=1e150).contains(&product) {
            sum += product.ln();
            product = 1.0;
        }
        product *= x + i;
        i += 1.0;
    }
    sum + product.ln()
}

/// The Stirling series at `high` = `low` + b less the one at `low`, exactly proportional to b.
fn stirling_difference(low: f64, high: f64, b: f64) -> f64 {
    let (u, v) = (1.0 / high, 1.0 / low);
    let (uu, vv) = (u * u, v * v);
    // u - v = -b u v and u^2 - v^2 = (u - v)(u + v), without cancellation.
    let first = -b * u * v;
    let square = first * (u + v);
    let (mut difference, mut power, mut sum) = (first, v, 0.0);
    for coefficient in STIRLING {
        sum += coefficient * difference;
        difference = uu * difference + square * power;
        power *= vv;
    }
    sum
}

/// The positive root of digamma is `ROOT.0 + ROOT.1`.
const ROOT: (f64, f64) = (1.461_632_144_968_362_2, 9.549_995_429_965_697e-17);

/// Where the series around the root is used.
const NEAR: f64 = 0.25;

/// Taylor coefficients of digamma at its root, from the first power on (by mpmath at 60 digits).
#[allow(clippy::unreadable_literal)]
const TAYLOR: [f64; 23] = [
    0.9676722454476212,
    -0.4427631689835921,
    0.258499760955651,
    -0.16394270544240652,
    0.10782405069126237,
    -0.07219956125645471,
    0.04880428816414311,
    -0.03316112647484736,
    0.022597648232218104,
    -0.01542476590494896,
    0.010538791616612175,
    -0.007204534386356869,
    0.004926781395729853,
    -0.003369801655439328,
    0.002305126326734928,
    -0.0015769367714301972,
    0.0010788252019162967,
    -0.0007380709389960052,
    0.000504953265834602,
    -0.0003454680251063077,
    0.00023635601564027053,
    -0.00016170622091974803,
    0.0001106337276874741,
];

/// digamma(x) = d/dx ln Gamma(x) for x > 0; NaN elsewhere.
#[must_use]
pub fn digamma(x: f64) -> f64 {
    if !(x > 0.0 && x.is_finite()) {
        return f64::NAN;
    }
    let offset = (x - ROOT.0) - ROOT.1;
    if offset.abs() <= NEAR {
        return offset * TAYLOR.iter().rev().fold(0.0, |sum, c| sum * offset + c);
    }
    let mut large = x;
    // Reciprocals, the last one first, so that small numbers are added first.
    let steps = if x < LARGE { (LARGE - x).ceil() } else { 0.0 };
    large += steps;
    let (mut shift, mut i) = (0.0, steps);
    while i > 0.0 {
        i -= 1.0;
        shift += 1.0 / (x + i);
    }
    let inverse = 1.0 / (large * large);
    // The derivative of Stirling's series, in powers of 1/x^2.
    let series = STIRLING
        .iter()
        .enumerate()
        .rev()
        .fold(0.0, |sum, (i, c)| (sum + (2 * i + 1) as f64 * c) * inverse);
    (large.ln() - shift) - (0.5 / large + series)
}

/// [`digamma`] where it is defined.
///
/// # Errors
///
/// An x that is not positive and finite.
pub fn checked_digamma(x: f64) -> Result<f64, Error> {
    let value = digamma(x);
    if value.is_nan() { Err(Error::invalid("x", "positive and finite", x)) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recurrences_hold() {
        for x in [0.3, 1.0, 1.4, 1.5, 2.0, 9.7, 10.0, 33.25, 1e6] {
            let gap = digamma(x + 1.0) - digamma(x) - 1.0 / x;
            assert!(gap.abs() < 4e-15 * digamma(x).abs().max(1.0), "{x}: {gap}");
            for b in [-0.2, 0.7, 3.5, 16.0, 17.0, 40.0] {
                let gap = log_gamma_ratio(x + 1.0, b) - log_gamma_ratio(x, b) - (b / x).ln_1p();
                assert!(gap.abs() < 1e-13 * (1.0 + b.abs()), "{x} {b}: {gap}");
            }
        }
    }

    /// Values by mpmath, to the edges of the domain; b = 0 marks those of digamma.
    #[test]
    fn values_agree_with_the_table() {
        let table = include_str!("../../tests/reference/gamma.csv");
        let mut rows = 0;
        for line in table.lines().skip(1) {
            let row: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
            let (x, b, value) = (row[0], row[1], row[2]);
            let (found, size) = if b == 0.0 {
                (digamma(x), value.abs())
            } else {
                let logs = x.ln().abs().max((x + b).ln().abs()).max(1.0);
                (log_gamma_ratio(x, b), value.abs().max(b.abs() * logs))
            };
            assert!(found == value || (found - value).abs() <= 4e-15 * size, "{line}: {found}");
            rows += 1;
        }
        assert!(rows > 250);
    }

    #[test]
    fn where_one_more_changes_nothing_the_ratio_ends() {
        let top = WHOLE;
        for x in [top - 12.0, top - 3.0, top - 1.0, top, top + 2.0, 2.0 * top, 8.0 * top] {
            for b in (1..40).map(|left| f64::from(left) - x).filter(|b| x + b > 0.0) {
                let found = log_gamma_ratio(x, b);
                assert!((found / (-x * (x.ln() - 1.0)) - 1.0).abs() < 1e-14, "{x} {b}: {found}");
            }
        }
    }

    #[test]
    fn outside_the_domain_is_nan() {
        for (x, b) in [(0.0, 1.0), (-1.0, 3.0), (2.0, -2.0), (f64::NAN, 1.0), (1.0, f64::NAN)] {
            assert!(log_gamma_ratio(x, b).is_nan());
        }
        assert!(digamma(0.0).is_nan() && digamma(-0.5).is_nan() && digamma(f64::NAN).is_nan());
    }
}
