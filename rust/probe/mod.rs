//! Windows into the samplers for tests: chosen random words in, values out.

#[cfg(test)]
mod accuracy;
#[cfg(test)]
mod double_double;
#[cfg(test)]
mod ends;

#[cfg(test)]
use crate::math::cos_sin_quarter;
use crate::math::ln_grid;
use crate::mechanisms::{Monotone, Noise, with_monotone};
use crate::simd::Portable;

/// The values of a noise at given random words (`None` for a noise without an integer route).
///
/// Words that the sampler would reject give what `value` gives for them.
#[must_use]
pub fn noise_at(noise: Noise, words: &[u64]) -> Option<Vec<f64>> {
    fn at<N: Monotone>(noise: &N, words: &[u64]) -> Vec<f64> {
        // SAFETY: plain Rust runs everywhere.
        words.iter().map(|&word| unsafe { noise.value::<Portable>([word; 8]) }[0]).collect()
    }
    with_monotone!(noise, noise => Some(at(&noise, words)), None)
}

/// ln(j / 2^52) as the samplers compute it, for whole numbers 1 <= j <= 2^52.
#[must_use]
pub fn ln(j: &[u64]) -> Vec<f64> {
    // SAFETY: plain Rust runs everywhere.
    j.iter().map(|&j| unsafe { ln_grid::<Portable>([j as f64; 8]) }[0]).collect()
}

/// Cosine and sine of pi x/2 as the samplers compute them, for |x| <= 1/2.
#[cfg(test)]
#[must_use]
pub fn cos_sin(x: &[f64]) -> Vec<(f64, f64)> {
    let at = |&x| {
        // SAFETY: plain Rust runs everywhere.
        let (cos, sin) = unsafe { cos_sin_quarter::<Portable>([x; 8]) };
        (cos[0], sin[0])
    };
    x.iter().map(at).collect()
}
