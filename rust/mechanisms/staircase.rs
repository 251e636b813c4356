//! Staircase noise by inversion of the distribution function.

use super::draw::{Draw, GRID, Monotone};
use crate::error::Error;
use crate::math::{LN2_HIGH, LN2_LOW, ln_grid};
use crate::simd::{Plain, Simd};

/// Largest width of a step: with the smallest decay the largest noise is 3.61e297.
const LARGEST: f64 = 1e290;
/// Bounds of the decay: the first keeps the number of a step below 3.7e7, the second keeps
/// exp(-decay) normal.
const DECAY: [f64; 2] = [1e-6, 700.0];
/// 52 ln 2 = 36.04, rounded up.
const DEEPEST: f64 = 36.05;

/// The staircase noise of Geng and Viswanath (2014): the density is a exp(-k e) for |s|/w in
/// [k, k + g), and a exp(-(k + 1) e) in [k + g, k + 1), for k = 0, 1, 2, ...
///
/// One word gives the sign and v = j/2^52, the probability of |s| or more, j the distance of its
/// top 53 bits from the nearer end (the ends of the grid are those of Laplace noise). The step
/// is k = floor(-ln v/e). Within it the tail t = v exp(k e) falls from 1, up to k + g at the rate
/// h = (1 - exp(-e))/(g + (1 - g) exp(-e)), and then at the rate h exp(-e) to exp(-e).
///
/// *The noise never falls.* The logarithm is increasing, so k never grows with v. For one k each
/// operation from v to the place within the step is monotone, also when it is rounded, and the
/// place is cut to [0, 1]; so no value of a step is beyond one of the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Staircase {
    width: f64,
    decay: f64,
    gamma: f64,
    /// t at the place g and at the place 1, and the rates before each.
    tails: [f64; 2],
    rates: [f64; 2],
}

impl Staircase {
    /// Noise whose steps have a width in the units of the input (the sensitivity of the source);
    /// from one step to the next the log density falls by the decay (its epsilon). A part gamma of
    /// the first step has its own density.
    ///
    /// # Errors
    ///
    /// A width that is not a finite number above 0 and at most 1e290, a decay outside [1e-6, 700],
    /// a gamma outside [0, 1].
    pub fn new(width: f64, decay: f64, gamma: f64) -> Result<Self, Error> {
        if !(width > 0.0 && width <= LARGEST) {
            let requirement = format!("a finite number above 0 and at most {LARGEST:e}");
            return Err(Error::invalid("width", requirement, width));
        }
        for (name, value, [low, high]) in [("decay", decay, DECAY), ("gamma", gamma, [0.0, 1.0])] {
            if !(low..=high).contains(&value) {
                return Err(Error::invalid(name, format!("in [{low:?}, {high:?}]"), value));
            }
        }
        let [fall] = exp(Plain::<1>, [-decay]);
        let whole = gamma + (1.0 - gamma) * fall;
        let rate = (1.0 - fall) / whole;
        let (tails, rates) = ([fall / whole, fall], [rate, rate * fall]);
        Ok(Self { width, decay, gamma, tails, rates })
    }
}

impl Draw for Staircase {
    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        let &[width, decay, gamma] = parameters else { return None };
        Some(Self::new(width, decay, gamma))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        // The end of the last step.
        ((DEEPEST / self.decay).floor() + 1.0) * self.width
    }
}

impl Monotone for Staircase {
    fn key_near(&self, value: f64) -> f64 {
        let steps = (value / self.width).abs();
        let place = steps.fract();
        let tail = if place < self.gamma {
            1.0 - self.rates[0] * place
        } else {
            self.tails[1] + self.rates[1] * (1.0 - place)
        };
        let depth = GRID * (-self.decay * steps.floor()).exp() * tail;
        if value < 0.0 { depth } else { 2.0 * GRID - depth }
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        let number = |value| simd.splatf(value);
        let j = simd.depth53(word);
        let steps = simd.mulf(ln_grid(simd, j), number(-1.0 / self.decay));
        // The nearest whole number, less 1 if that is above.
        let whole = simd.subf(simd.addf(steps, number(GRID)), number(GRID));
        let less = simd.subf(whole, number(1.0));
        let k = simd.selectf(simd.gef(steps, whole), whole, less);

        // The distance may have either sign.
        let v = simd.mulf(simd.magnitude(j), number(1.0 / GRID));
        let grown = exp(simd, simd.mulf(k, number(self.decay)));
        let tail = simd.minf(simd.mulf(v, grown), number(1.0));
        let [first, last] = self.tails;
        let gone = simd.divf(simd.subf(number(1.0), tail), number(self.rates[0]));
        let before = simd.minf(gone, number(self.gamma));
        let rest = simd.maxf(simd.subf(tail, number(last)), number(0.0));
        let left = simd.subf(number(1.0), simd.divf(rest, number(self.rates[1])));
        let after = simd.maxf(left, number(self.gamma));
        let place = simd.selectf(simd.gef(tail, number(first)), before, after);

        let sign = simd.and(simd.xor(word, simd.splat(1 << 63)), simd.splat(1 << 63));
        let width = simd.float(simd.xor(simd.bits(number(self.width)), sign));
        simd.mulf(simd.addf(k, place), width)
    }
}

/// e^x for -700 <= x <= 700, by x = n ln 2 + r and the series of e^r to r^13, |r| <= 0.3466: the
/// terms left out are below 5e-18. Of the crate's own, for a result may not depend on a library.
#[inline(always)]
fn exp<S: Simd>(simd: S, x: S::F) -> S::F {
    // Added to a number, it leaves the nearest whole number in the low bits.
    let shift = simd.splatf(1.5 * GRID);
    let shifted = simd.addf(simd.mulf(x, simd.splatf(std::f64::consts::LOG2_E)), shift);
    let n = simd.subf(shifted, shift);
    let high = simd.subf(x, simd.mulf(n, simd.splatf(LN2_HIGH)));
    let r = simd.subf(high, simd.mulf(n, simd.splatf(LN2_LOW)));
    let mut sum = simd.splatf(1.0);
    for degree in (1..=13_u32).rev() {
        let term = simd.mulf(sum, simd.mulf(r, simd.splatf(1.0 / f64::from(degree))));
        sum = simd.addf(term, simd.splatf(1.0));
    }
    simd.float(simd.add(simd.bits(sum), simd.shl::<52>(simd.bits(shifted))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(noise: &Staircase, key: u64) -> f64 {
        noise.value(Plain::<1>, [key << 11])[0]
    }

    fn list_noises() -> Vec<Staircase> {
        let rows = [(1.0, 1.0, 0.37), (0.3, 4.0, 0.0), (2.0, 0.01, 1.0), (7.0, 40.0, 1e-9)];
        let mut noises: Vec<_> = rows.map(|(w, e, g)| Staircase::new(w, e, g).unwrap()).into();
        noises.extend([DECAY[0], 0.3, DECAY[1]].map(|e| Staircase::new(1.0, e, 0.5).unwrap()));
        noises
    }

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for i in -7000..=7000 {
            let x = f64::from(i) * 0.1;
            let ratio = exp(Plain::<1>, [x])[0] / x.exp();
            assert!((ratio - 1.0).abs() < 1e-15, "{x} {ratio}");
        }
    }

    /// Around the ends of the steps, of their inner parts, and of the grid.
    #[test]
    #[allow(clippy::cast_sign_loss)]
    fn neighbours_never_fall() {
        for noise in list_noises() {
            let mut starts = vec![0, Staircase::LAST - 3000, (1 << 52) - 1500];
            for i in 0..60_u32 {
                let end = f64::from(i / 2) + f64::from(i % 2) * noise.gamma;
                let key = noise.key_near(-noise.width * end) as u64;
                starts.extend([key, (1 << 53) - key.max(1)].map(|key| key.saturating_sub(1500)));
            }
            for start in starts {
                let end = Staircase::LAST.min(start + 3000);
                let values: Vec<_> = (start..=end).map(|key| at(&noise, key)).collect();
                assert!(values.is_sorted(), "{noise:?} falls after {start}");
            }
        }
    }

    #[test]
    fn the_quantiles_are_those_of_the_law() {
        for noise in list_noises() {
            let reach = noise.reach();
            for bits in 0..52 {
                for key in [1_u64 << bits, (1 << 52) - (1 << bits) / 3] {
                    let value = at(&noise, key);
                    // The key lies between those of the value's neighbours.
                    let [low, high] =
                        [1e-15, -1e-15].map(|part| noise.key_near(value * (1.0 + part)));
                    let near = low / (1.0 + 1e-13)..=high * (1.0 + 1e-13);
                    assert!(value <= 0.0 && -value <= reach, "{noise:?} {value}");
                    assert!(near.contains(&(key as f64)), "{noise:?} {key} {value} {near:?}");
                    assert_eq!(value, -at(&noise, (1 << 53) - key));
                }
            }
            let most = -at(&noise, 1);
            assert!(reach <= 1.001 * most + noise.width, "{noise:?} {most} {reach}");
        }
    }
}
