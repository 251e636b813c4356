//! Fair bits: the mechanism that tells nothing.

use super::draw::{Draw, Monotone};
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
    unsafe fn values<S: Simd>(&self, words: [S::U; 2]) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe { [self.value::<S>(words[0]); 2] }
    }
}

impl Monotone for RandomBits {
    #[inline(always)]
    unsafe fn value<S: Simd>(&self, word: S::U) -> S::F {
        // SAFETY: the caller vouches for the CPU.
        unsafe { S::selectf(S::top(word), S::splatf(1.0), S::splatf(0.0)) }
    }
}
