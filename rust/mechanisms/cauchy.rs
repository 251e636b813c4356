//! Cauchy noise by inversion of the distribution function.

use std::f64::consts::PI;

use super::draw::{Draw, GRID, Monotone};
use crate::error::Error;
use crate::math::cos_sin_quarter;
use crate::simd::Simd;

/// Largest scale: the largest noise, 2.87e15 scales, and sums of two are still finite.
const LARGEST: f64 = 1e290;

/// tan(pi/2 (1 - 2^-52)) = 2^53/pi, rounded up.
const FARTHEST: f64 = 2.867_081e15;

/// Cauchy(0, b): b tan(pi x/2), x = (2k + 1)/2^52 - 1 with k the top 52 bits of one word.
///
/// The grid is symmetric and has no end at infinity; the largest noise is 2.87e15 b. For |x| > 1/2
/// the tangent is the cotangent of pi (1 - |x|)/2, where 1 - |x| is exact.
///
/// *The noise never falls.* Between neighbours the tangent grows by the factor 1 + 2^-51 pi/sin(pi |x|)
/// or more, so two values keep their order if each has a relative error below half of that,
/// 6.28 u with u = 2^-53. First-order bounds of the errors, in u, where they are largest,
/// at |x| = 1/2:
///
/// | rounding of | sine | cosine |
/// | --- | --- | --- |
/// | y = x x | 0.12 | 0.42 |
/// | the polynomial, its coefficients and fit | 1.31 | 0.89 |
/// | its product | 1.00 | 0.36 |
/// | the sum with 1 | - | 0.71 |
/// | all | 2.43 | 2.38 |
///
/// With 1.00 for the quotient these are 5.81. Away from |x| = 1/2 the errors are smaller and the
/// factor is larger. The product with b is rounded to nearest and keeps the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cauchy {
    scale: f64,
}

impl Cauchy {
    /// Noise of scale b, in the units of the input.
    ///
    /// # Errors
    ///
    /// A scale that is not a finite number above 0 and at most 1e290.
    pub fn new(scale: f64) -> Result<Self, Error> {
        if scale > 0.0 && scale <= LARGEST {
            Ok(Self { scale })
        } else {
            let requirement = format!("a finite number above 0 and at most {LARGEST:e}");
            Err(Error::invalid("scale", requirement, scale))
        }
    }
}

impl Draw for Cauchy {
    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        let &[scale] = parameters else { return None };
        Some(Self::new(scale))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        FARTHEST * self.scale
    }
}

impl Monotone for Cauchy {
    const SHIFT: u32 = 12;
    const LAST: u64 = (1 << 52) - 1;

    fn key_near(&self, value: f64) -> f64 {
        let depth = GRID / PI * (self.scale / value.abs()).atan();
        if value < 0.0 { depth } else { GRID - depth }
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        // k/2^52 as the fraction of a number in [2, 4), which is 2 + 2k/2^52.
        let two_to_four = simd.float(simd.or(simd.shr::<12>(word), simd.splat(0x4000 << 48)));
        let left = simd.subf(two_to_four, simd.splatf(3.0));
        let x = simd.addf(left, simd.splatf(1.0 / GRID));
        let far = simd.magnitude(x);
        let near = simd.subf(simd.splatf(1.0), far);
        let beyond = simd.gef(far, near);
        let (cos, sin) = cos_sin_quarter(simd, simd.minf(far, near));
        let tangent = simd.divf(simd.selectf(beyond, cos, sin), simd.selectf(beyond, sin, cos));
        let sign = simd.and(simd.bits(x), simd.splat(1 << 63));
        let scale = simd.float(simd.xor(simd.bits(simd.splatf(self.scale)), sign));
        simd.mulf(tangent, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Plain;

    fn at(noise: Cauchy, key: u64) -> f64 {
        noise.value(Plain::<1>, [key << 12])[0]
    }

    /// Around |x| = 1/2, where neighbours are nearest, around the other changes of the exponent,
    /// and at both ends.
    #[test]
    fn neighbours_rise() {
        const LAST: u64 = Cauchy::LAST;
        let noise = Cauchy::new(1.0).unwrap();
        let mut starts = vec![0, LAST / 4 - 30_000, 3 * (LAST / 4) - 30_000, LAST / 2 - 30_000];
        starts.extend((17..50).flat_map(|power| [1 << power, LAST - (1 << power)]));
        starts.extend((0..40).map(|i| i * (LAST / 41) + 12_345));
        for start in starts {
            let end = LAST.min(start + 60_000);
            let mut before = at(noise, start);
            for key in start + 1..=end {
                let value = at(noise, key);
                assert!(before < value, "falls at {key}: {before:?} {value:?}");
                before = value;
            }
        }
    }

    #[test]
    fn the_quantiles_are_those_of_the_law() {
        let noise = Cauchy::new(2.0).unwrap();
        let reach = noise.reach();
        for key in [0, 1, 1 << 40, 1 << 50, (1 << 51) - 1, 1 << 51, 3 << 50, Cauchy::LAST] {
            let value = at(noise, key);
            assert_eq!(value, -at(noise, Cauchy::LAST - key));
            let depth = (2.0 * key.min(Cauchy::LAST - key) as f64 + 1.0) / GRID;
            let tail = 2.0 / PI * (2.0 / value.abs()).atan();
            assert!((tail / depth - 1.0).abs() < 1e-14, "{key} {tail} {depth}");
            assert!(value.abs() <= reach && (noise.key_near(value) - key as f64).abs() < 2.0);
        }
        assert!(reach <= 1.001 * at(noise, Cauchy::LAST));
    }
}
