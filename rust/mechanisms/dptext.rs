//! The faulty Laplace sampler of `DPText` (Beigi et al., 2019), in the three ways it can be read.
//!
//! -b sgn(u) ln(1 - 2|u|) belongs to u in [-1/2, 1/2) but is fed u in [0, 1) (Habernal, 2022,
//! eq. 8-9): for u > 1/2 the logarithm's argument is negative. u = k/2^53. As printed u = 1/2
//! gives +infinity (numpy's `log(0)`); here k = 2^52 takes the value of k = 2^52 - 1.

use super::draw::{Draw, Monotone, positive};
use crate::error::Error;
use crate::math::ln_grid;
use crate::random::Lanes;
use crate::simd::{Simd, integer};

/// Words above this one have k > 2^52, that is u > 1/2.
const LAST_NUMBER: u64 = (1 << 63) | 0x7ff;

/// b times -ln(1 - 2u) for words up to `LAST_NUMBER`.
#[inline(always)]
unsafe fn lower_half<S: Simd>(scale: f64, word: S::U) -> S::F {
    // SAFETY: the caller vouches for the CPU.
    unsafe {
        let k = integer::<S>(S::shr::<11>(word));
        let j = S::maxf(S::subf(S::splatf(4_503_599_627_370_496.0), k), S::splatf(1.0));
        S::mulf(S::splatf(-scale), ln_grid::<S>(j))
    }
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
    unsafe fn values<S: Simd>(&self, words: [S::U; 2]) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let (word, _) = self.ordered::<S>(words[0]);
            [self.value::<S>(word); 2]
        }
    }
}

impl Monotone for DpText {
    const LAST: u64 = 1 << 52;

    /// A word whose value would be NaN becomes word 0, whose value is the same 0: so the whole
    /// sampler is a monotone function of the word that is left.
    #[inline(always)]
    unsafe fn ordered<S: Simd>(&self, word: S::U) -> (S::U, S::M) {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let nan = S::gt(word, S::splat(LAST_NUMBER));
            (S::select(nan, S::splat(0), word), S::notm(nan))
        }
    }

    #[inline(always)]
    unsafe fn value<S: Simd>(&self, word: S::U) -> S::F {
        // SAFETY: the caller vouches for the CPU.
        unsafe { lower_half::<S>(self.scale, word) }
    }
}

impl Draw for DpTextResample {
    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        of_mode("resample", Self::new, parameters, mode)
    }

    #[inline(always)]
    unsafe fn word<S: Simd>(&self, lanes: &mut Lanes<S>) -> S::U {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let mut word = lanes.next();
            let mut nan = S::gt(word, S::splat(LAST_NUMBER));
            while S::mask(nan) != 0 {
                word = S::select(nan, lanes.next_where(nan), word);
                nan = S::gt(word, S::splat(LAST_NUMBER));
            }
            word
        }
    }

    #[inline(always)]
    unsafe fn values<S: Simd>(&self, words: [S::U; 2]) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe { [self.value::<S>(words[0]); 2] }
    }
}

impl Monotone for DpTextResample {
    const LAST: u64 = 1 << 52;

    #[inline(always)]
    unsafe fn value<S: Simd>(&self, word: S::U) -> S::F {
        // SAFETY: the caller vouches for the CPU.
        unsafe { lower_half::<S>(self.scale, word) }
    }
}

impl Draw for DpTextKeep {
    const NAN: bool = true;

    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>> {
        of_mode("keep", Self::new, parameters, mode)
    }

    #[inline(always)]
    unsafe fn values<S: Simd>(&self, words: [S::U; 2]) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let (word, number) = self.ordered::<S>(words[0]);
            let value = self.value::<S>(S::select(number, word, S::splat(0)));
            [S::selectf(number, value, S::splatf(f64::NAN)); 2]
        }
    }
}

impl Monotone for DpTextKeep {
    const LAST: u64 = 1 << 52;

    #[inline(always)]
    unsafe fn ordered<S: Simd>(&self, word: S::U) -> (S::U, S::M) {
        // SAFETY: the caller vouches for the CPU.
        unsafe { (word, S::notm(S::gt(word, S::splat(LAST_NUMBER)))) }
    }

    #[inline(always)]
    unsafe fn value<S: Simd>(&self, word: S::U) -> S::F {
        // SAFETY: the caller vouches for the CPU.
        unsafe { lower_half::<S>(self.scale, word) }
    }
}
