//! Windows into the samplers for tests: chosen random words in, values out.

#[cfg(test)]
mod accuracy;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod double_double;
#[cfg(test)]
mod ends;

#[cfg(test)]
use crate::math::cos_sin_quarter;
use crate::math::ln_grid;
use crate::mechanisms::{Monotone, Noise, with_monotone};
use crate::simd::Plain;

/// The values of a noise at given random words (`None` for a noise without an integer route).
///
/// Words that the sampler would reject give what `value` gives for them.
#[must_use]
pub fn noise_at(noise: Noise, words: &[u64]) -> Option<Vec<f64>> {
    fn at<N: Monotone>(noise: &N, words: &[u64]) -> Vec<f64> {
        words.iter().map(|&word| noise.value(Plain::<1>, [word])[0]).collect()
    }
    with_monotone!(noise, noise => Some(at(&noise, words)), None)
}

/// ln(j / 2^52) as the samplers compute it, for whole numbers 1 <= j <= 2^52.
#[must_use]
pub fn ln(j: &[u64]) -> Vec<f64> {
    j.iter().map(|&j| ln_grid(Plain::<1>, [j as f64])[0]).collect()
}

/// Cosine and sine of pi x/2 as the samplers compute them, for |x| <= 1/2.
#[cfg(test)]
#[must_use]
pub fn cos_sin(x: &[f64]) -> Vec<(f64, f64)> {
    let at = |&x| {
        let (cos, sin) = cos_sin_quarter(Plain::<1>, [x]);
        (cos[0], sin[0])
    };
    x.iter().map(at).collect()
}
