//! From counts to a certified bound: pure functions of integers.

use std::f64::consts::PI;

use crate::error::Error;

/// How often an event happened on each side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Times the event happened among the outputs on x, from 0 to `n`.
    pub k: u64,
    /// Outputs drawn on x.
    pub n: u64,
    /// Times the event happened among the outputs on x', from 0 to `n_prime`.
    pub k_prime: u64,
    /// Outputs drawn on x'.
    pub n_prime: u64,
}

impl Counts {
    /// Counts of the opposite event on the same draws; `k` must be at most `n` on both sides.
    #[must_use]
    pub fn complement(self) -> Self {
        Self { k: self.n - self.k, k_prime: self.n_prime - self.k_prime, ..self }
    }

    /// The same counts with the two sides exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { k: self.k_prime, n: self.n_prime, k_prime: self.k, n_prime: self.n }
    }
}

/// Certified lower limit on epsilon from how often an event happened on the two sides.
///
/// `max(0, ln((p_low - delta) / q_high))` with `p_low` the lower limit for P(event | x) and
/// `q_high` the upper limit for P(event | x'), each at (1 - confidence)/2, so that both hold at once
/// with probability at least `confidence`. It is sound when the draws are independent, their
/// numbers were fixed in advance, and the event and the order of the sides before them.
///
/// Source: Clopper and Pearson (1934), Biometrika 26; Jagielski, Ullman and Oprea (2020), section
/// 4, for the quotient.
///
/// # Errors
///
/// As for [`limits`]; delta outside [0, 1), confidence outside (0, 1).
///
/// ```
/// use dpcore::bounds::{Counts, clopper_pearson};
///
/// let counts = Counts { k: 900, n: 1000, k_prime: 100, n_prime: 1000 };
/// let epsilon = clopper_pearson(counts, 0.0, 0.95)?;
/// assert!((epsilon - 1.9897).abs() < 5e-5);
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn clopper_pearson(counts: Counts, delta: f64, confidence: f64) -> Result<f64, Error> {
    let delta = delta_level(delta)?;
    let alpha = (1.0 - confidence_level("confidence", confidence)?) / 2.0;
    let (p_low, _) = limits(counts.k, counts.n, alpha)?;
    let (_, q_high) = limits(counts.k_prime, counts.n_prime, alpha)?;
    Ok(if p_low <= delta { 0.0 } else { ((p_low - delta).ln() - q_high.ln()).max(0.0) })
}

/// The most draws of [`limits`]: up to here numbers of draws are exact in f64.
pub const MOST_DRAWS: u64 = 1 << 53;

/// One-sided limits (low, high) for the probability of an event seen k times in n draws.
///
/// `low` solves P(Binomial(n, low) >= k) = alpha and `high` solves P(Binomial(n, high) <= k) =
/// alpha; low is 0 at k = 0, high is 1 at k = n. It takes time in proportion to sqrt(n): 0.1 ms
/// at 10^6 draws.
///
/// # Errors
///
/// n outside 1 to 2^53, k above n, alpha outside (0, 1).
pub fn limits(k: u64, n: u64, alpha: f64) -> Result<(f64, f64), Error> {
    if n == 0 || n > MOST_DRAWS {
        return Err(Error::invalid("n", "from 1 to 2^53", n));
    }
    if k > n {
        return Err(Error::invalid("k", format!("at most n = {n}"), k));
    }
    let alpha = confidence_level("alpha", alpha)?;
    // The two ends have closed forms: alpha = low^n at k = n.
    let end = alpha.ln() / n as f64;
    let low = match k {
        0 => 0.0,
        _ if k == n => end.exp(),
        _ => odds(k, n, alpha).0,
    };
    // k at most in n draws is n - k at least of what else may happen.
    let high = match n - k {
        0 => 1.0,
        rest if rest == n => -end.exp_m1(),
        rest => odds(rest, n, alpha).1,
    };
    Ok((low, high))
}

pub(crate) fn confidence_level(name: &'static str, value: f64) -> Result<f64, Error> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(Error::invalid(name, "strictly between 0 and 1", value))
    }
}

pub(crate) fn delta_level(value: f64) -> Result<f64, Error> {
    if (0.0..1.0).contains(&value) {
        Ok(value)
    } else {
        Err(Error::invalid("delta", "at least 0 and below 1", value))
    }
}

/// (p, 1 - p), both to full precision, with P(Binomial(n, p) >= k) = alpha, for 0 < k < n.
///
/// Newton's method for f(v) = ln P - ln alpha, v = ln(p/(1 - p)), whose derivative is k (1 - p)/S
/// with S the tail divided by its first term. It falls in v, so f is concave: a step from the left
/// never passes the root, one from the right lands left of it.
fn odds(k: u64, n: u64, alpha: f64) -> (f64, f64) {
    let (whole, rest) = (k as f64, (n - k) as f64);
    let mut v = (whole / rest).ln();
    // Doubles the digits at each step, once near: some ten steps.
    for _ in 0..100 {
        let (p, q) = split(v);
        let sum = tail(whole, rest, p, q);
        let step = (log_mass(whole, rest, p, q) + sum.ln() - alpha.ln()) * sum / (whole * q);
        v -= step;
        if step.abs() <= 2e-16 * v.abs().max(1.0) {
            break;
        }
    }
    split(v)
}

/// (p, 1 - p) of ln(p/(1 - p)).
fn split(v: f64) -> (f64, f64) {
    (1.0 / (1.0 + (-v).exp()), 1.0 / (1.0 + v.exp()))
}

/// P(X >= k)/P(X = k) for k successes and `rest` failures: its terms, from the first one on, all
/// positive.
fn tail(k: f64, rest: f64, p: f64, q: f64) -> f64 {
    let (odds, mut term, mut sum, mut i) = (p / q, 1.0, 1.0, 0.0);
    while i < rest {
        term *= (rest - i) / (k + i + 1.0) * odds;
        sum += term;
        i += 1.0;
        // From the mode on terms fall ever faster: what is left is below this many times the last.
        let ratio = (rest - i) / (k + i + 1.0) * odds;
        if ratio < 1.0 && term * ratio < 1e-18 * sum * (1.0 - ratio) {
            break;
        }
    }
    sum
}

/// ln P(X = k) of the binomial law, to 1e-15 of itself and of 1 (Loader, 2000, "Fast and accurate
/// computation of binomial probabilities"): Stirling's formula, whose large terms cancel in the
/// deviances.
fn log_mass(k: f64, rest: f64, p: f64, q: f64) -> f64 {
    let n = k + rest;
    let exponent = stirling(n) - stirling(k) - stirling(rest);
    let scale = 0.5 * (n / (2.0 * PI * k * rest)).ln();
    exponent - deviance(k, n * p) - deviance(rest, n * q) + scale
}

/// ln n! less Stirling's ln(sqrt(2 pi n) (n/e)^n).
fn stirling(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (1..=15).map(f64::from).take_while(|&i| i <= n).product();
        return factorial.ln() - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let z = 1.0 / (n * n);
    let series = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];
    series.iter().rev().fold(-691.0 / 360_360.0, |sum, c| sum * z + c) / n
}

/// x ln(x/m) + m - x, without cancellation where the two are close.
fn deviance(x: f64, m: f64) -> f64 {
    let gap = x - m;
    if gap.abs() > 0.1 * (x + m) {
        return x * (x / m).ln() - gap;
    }
    // With v = gap/(x + m): ln(x/m) = 2 artanh v.
    let v = gap / (x + m);
    let (square, mut power, mut sum) = (v * v, 2.0 * x * v, gap * v);
    for j in 1..20 {
        power *= square;
        sum += power / f64::from(2 * j + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Binomial(n, p) >= k), term by term.
    fn at_least(k: u64, n: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(n as i32);
        let mut sum = if k == 0 { term } else { 0.0 };
        for i in 1..=n {
            term *= (n - i + 1) as f64 / i as f64 * p / (1.0 - p);
            sum += if i >= k { term } else { 0.0 };
        }
        sum
    }

    #[test]
    fn limits_solve_their_equations() {
        for n in [1, 2, 7, 40] {
            for k in 0..=n {
                for alpha in [0.3, 0.025, 1e-6] {
                    let (low, high) = limits(k, n, alpha).unwrap();
                    let near = |found: f64| (found / alpha - 1.0).abs() < 1e-11;
                    assert!(if k == 0 { low == 0.0 } else { near(at_least(k, n, low)) });
                    let others = at_least(n - k, n, 1.0 - high);
                    assert!(if k == n { high == 1.0 } else { (others / alpha - 1.0).abs() < 1e-7 });
                }
            }
        }
    }

    #[test]
    fn bad_arguments_are_named() {
        let starts = |found: Result<(f64, f64), Error>, text: &str| {
            let error = found.unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        };
        starts(limits(0, 0, 0.1), "n must be from 1 to 2^53");
        starts(limits(0, u64::MAX, 0.1), "n must be from 1 to 2^53");
        starts(limits(3, 2, 0.1), "k must be at most n = 2");
        for wrong in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
            starts(limits(1, 2, wrong), "alpha must be strictly between 0 and 1");
        }
        let counts = Counts { k: 1, n: 2, k_prime: 1, n_prime: 2 };
        for wrong in [-0.1, 1.0, f64::NAN] {
            let error = clopper_pearson(counts, wrong, 0.95).unwrap_err().to_string();
            assert!(error.starts_with("delta must be at least 0"), "{error}");
        }
        assert!(clopper_pearson(counts, 0.0, 1.0).is_err());
        assert!(clopper_pearson(Counts { k_prime: 3, ..counts }, 0.0, 0.9).is_err());
    }
}
