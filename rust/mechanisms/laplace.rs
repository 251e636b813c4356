//! Laplace noise by inversion of the distribution function.

use super::draw::{DEEPEST, Draw, GRID, Monotone, positive};
use crate::error::Error;
use crate::math::ln_grid;
use crate::simd::Simd;

/// Laplace(0, b): with u = k/2^53 one uniform draw,
///
/// - `two_branch` (Habernal, 2022, eq. 5): b ln(2u) for u < 1/2, else -b ln(2(1 - u));
/// - `sign` (eq. 4): -b sgn(u - 1/2) ln(1 - 2|u - 1/2|);
/// - `centred` (eq. 6-7): the same with u in [-1/2, 1/2).
///
/// On this grid all arguments of the logarithm are exact and the three are one function: b ln(j
/// 2^-52) with the sign of the half, j the distance of k from the nearer end of [0, 2^53). k = 0
/// would be -infinity and takes the value of k = 1, so the largest noise is 36.04 b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laplace {
    scale: f64,
}

impl Laplace {
    /// Noise of scale b, in the units of the input.
    ///
    /// # Errors
    ///
    /// A scale that is not a finite number above 0 and at most 1e300.
    pub fn new(scale: f64) -> Result<Self, Error> {
        Ok(Self { scale: positive("scale", scale)? })
    }
}

impl Draw for Laplace {
    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        let &[scale] = parameters else { return None };
        Some(match mode {
            "two_branch" | "sign" | "centred" => Self::new(scale),
            _ => Err(Error::invalid("variant", "two_branch, sign or centred", mode)),
        })
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        DEEPEST * self.scale
    }
}

impl Monotone for Laplace {
    fn key_near(&self, value: f64) -> f64 {
        let depth = GRID * (-(value / self.scale).abs()).exp();
        if value < 0.0 { depth } else { 2.0 * GRID - depth }
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        // k = 0 as k = 1.
        let j = simd.depth53(word);
        let sign = simd.and(word, simd.splat(1 << 63));
        let scale = simd.float(simd.xor(simd.bits(simd.splatf(self.scale)), sign));
        simd.mulf(scale, ln_grid(simd, j))
    }
}
