//! Fair bits: the mechanism that tells nothing.

use super::draw::{Draw, GRID, Monotone};
use crate::error::Error;
use crate::simd::Simd;

/// Each output entry is 0 or 1 with probability 1/2, whatever the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomBits;

impl Draw for RandomBits {
    const BLIND: bool = true;

    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        parameters.is_empty().then_some(Ok(Self))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        1.0
    }
}

impl Monotone for RandomBits {
    fn key_near(&self, _: f64) -> f64 {
        GRID
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        simd.selectf(simd.top(word), simd.splatf(1.0), simd.splatf(0.0))
    }
}
