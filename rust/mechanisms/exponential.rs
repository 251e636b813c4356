//! Exponential noise by inversion.

use super::draw::{DEEPEST, Draw, GRID, Monotone, positive};
use crate::error::Error;
use crate::math::ln_grid;
use crate::simd::{Simd, integer};

/// Exp(b): -b ln(1 - u), u = k/2^52 with k the top 52 bits of one word.
///
/// 52 bits and not 53, so that the logarithm's arguments lie on the grid on which it is strictly
/// increasing; the largest noise is 36.04 b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    scale: f64,
}

impl Exponential {
    /// Noise of mean b, in the units of the input.
    ///
    /// # Errors
    ///
    /// A scale that is not a finite number above 0 and at most 1e300.
    pub fn new(scale: f64) -> Result<Self, Error> {
        Ok(Self { scale: positive("scale", scale)? })
    }
}

impl Draw for Exponential {
    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        let &[scale] = parameters else { return None };
        Some(Self::new(scale))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        DEEPEST * self.scale
    }
}

impl Monotone for Exponential {
    const SHIFT: u32 = 12;
    const LAST: u64 = (1 << 52) - 1;

    fn key_near(&self, value: f64) -> f64 {
        -GRID * (-value / self.scale).exp_m1()
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        let k = integer(simd, simd.shr::<12>(word));
        let j = simd.subf(simd.splatf(4_503_599_627_370_496.0), k);
        simd.mulf(simd.splatf(-self.scale), ln_grid(simd, j))
    }
}
