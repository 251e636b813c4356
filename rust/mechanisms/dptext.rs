//! The faulty Laplace sampler of `DPText` (Beigi et al., 2019), in the three ways it can be read.
//!
//! -b sgn(u) ln(1 - 2|u|) belongs to u in [-1/2, 1/2) but is fed u in [0, 1) (Habernal, 2022,
//! eq. 8-9): for u > 1/2 the logarithm's argument is negative. u = k/2^53. As printed u = 1/2
//! gives +infinity (numpy's `log(0)`); here k = 2^52 takes the value of k = 2^52 - 1.

use super::draw::{DEEPEST, Draw, GRID, Monotone, positive};
use crate::error::Error;
use crate::math::ln_grid;
use crate::simd::{Simd, integer};

/// Words above this one have k > 2^52, that is u > 1/2.
const LAST_NUMBER: u64 = (1 << 63) | 0x7ff;

/// b times -ln(1 - 2u) for words up to `LAST_NUMBER`.
#[inline(always)]
fn lower_half<S: Simd>(simd: S, scale: f64, word: S::U) -> S::F {
    let k = integer(simd, simd.shr::<11>(word));
    let j = simd.maxf(simd.subf(simd.splatf(4_503_599_627_370_496.0), k), simd.splatf(1.0));
    simd.mulf(simd.splatf(-scale), ln_grid(simd, j))
}

/// The key near which `lower_half` passes a value.
fn key_near(scale: f64, value: f64) -> f64 {
    -GRID * (-value / scale).exp_m1()
}

/// The sampler of one mode of the class.
fn of_mode<N>(
    own: &str,
    new: fn(f64) -> Result<N, Error>,
    parameters: &[f64],
    mode: &str,
) -> Option<Result<N, Error>> {
    let &[scale] = parameters else { return None };
    match mode {
        _ if mode == own => Some(new(scale)),
        "zero" | "resample" | "keep" => None,
        _ => Some(Err(Error::invalid("nan", "zero, resample or keep", mode))),
    }
}

macro_rules! faulty {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            scale: f64,
        }

        impl $name {
            /// The sampler with scale b, in the units of the input.
            ///
            /// # Errors
            ///
            /// A scale that is not a finite number above 0 and at most 1e300.
            pub fn new(scale: f64) -> Result<Self, Error> {
                Ok(Self { scale: positive("scale", scale)? })
            }
        }
    };
}

faulty! {
    /// NaN replaced by 0: half an atom at 0, half exponential.
    DpText
}
faulty! {
    /// Drawn again until it is a number: exponential. The new word comes from the same lane.
    DpTextResample
}
faulty! {
    /// NaN kept: half NaN, half exponential.
    DpTextKeep
}

impl Draw for DpText {
    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        of_mode("zero", Self::new, parameters, mode)
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        let (word, _) = self.ordered(simd, words[0]);
        [self.value(simd, word); 2]
    }

    fn reach(&self) -> f64 {
        DEEPEST * self.scale
    }
}

impl Monotone for DpText {
    const LAST: u64 = 1 << 52;

    fn key_near(&self, value: f64) -> f64 {
        key_near(self.scale, value)
    }

    /// A word whose value would be NaN becomes word 0, whose value is the same 0: so the whole
    /// sampler is a monotone function of the word that is left.
    #[inline(always)]
    fn ordered<S: Simd>(&self, simd: S, word: S::U) -> (S::U, S::M) {
        let nan = simd.gt(word, simd.splat(LAST_NUMBER));
        (simd.select(nan, simd.splat(0), word), simd.notm(nan))
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        lower_half(simd, self.scale, word)
    }
}

impl Draw for DpTextResample {
    const PASSES: bool = true;

    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        of_mode("resample", Self::new, parameters, mode)
    }

    #[inline(always)]
    fn takes<S: Simd>(&self, simd: S, word: S::U) -> S::M {
        simd.notm(simd.gt(word, simd.splat(LAST_NUMBER)))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        DEEPEST * self.scale
    }
}

impl Monotone for DpTextResample {
    const LAST: u64 = 1 << 52;

    fn key_near(&self, value: f64) -> f64 {
        key_near(self.scale, value)
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        lower_half(simd, self.scale, word)
    }
}

impl Draw for DpTextKeep {
    const NAN: bool = true;

    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        of_mode("keep", Self::new, parameters, mode)
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        let (word, number) = self.ordered(simd, words[0]);
        let value = self.value(simd, simd.select(number, word, simd.splat(0)));
        [simd.selectf(number, value, simd.splatf(f64::NAN)); 2]
    }

    fn reach(&self) -> f64 {
        DEEPEST * self.scale
    }
}

impl Monotone for DpTextKeep {
    const LAST: u64 = 1 << 52;

    fn key_near(&self, value: f64) -> f64 {
        key_near(self.scale, value)
    }

    #[inline(always)]
    fn ordered<S: Simd>(&self, simd: S, word: S::U) -> (S::U, S::M) {
        (word, simd.notm(simd.gt(word, simd.splat(LAST_NUMBER))))
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        lower_half(simd, self.scale, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Plain;

    /// Chance never gets there: the word in question is one of 2^53.
    #[test]
    fn a_number_is_up_to_one_half_and_nan_above() {
        let (zero, keep) = (DpText { scale: 2.0 }, DpTextKeep { scale: 2.0 });
        for (word, number) in [
            (0, true),
            (1 << 63, true),
            (LAST_NUMBER, true),
            (LAST_NUMBER + 1, false),
            (u64::MAX, false),
        ] {
            let value = keep.values(Plain::<1>, [[word]; 2])[0][0];
            assert_eq!(value.is_nan(), !number, "{word:#x}");
            let other = zero.values(Plain::<1>, [[word]; 2])[0][0];
            assert_eq!(other, if number { value } else { 0.0 });
            assert_eq!(word >> 11 > 1 << 52, !number, "u > 1/2");
            let takes = DpTextResample { scale: 2.0 }.takes(Plain::<1>, [word]);
            assert_eq!(Plain::<1>.mask(takes) == 1, number);
        }
    }
}
