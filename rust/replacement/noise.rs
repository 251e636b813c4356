//! Noise on the vectors of words: a uniform direction times a length from a Gamma law.

use super::rows::check_inputs;
use crate::error::Error;
use crate::mechanisms::{Exponential, Gaussian, Mechanism, Uniform};
use crate::neighbours::distance::squared;
use crate::options::Options;
use crate::pool::each;
use crate::random::{Purpose, Side};
use crate::run::{Job, sample};

/// Lengths are drawn for so many numbers of noise at a time.
const NUMBERS: usize = 1 << 17;

/// Noise with density proportional to exp(-|z| / scale) on the vectors of words.
#[derive(Clone, Copy, Debug)]
pub struct Noisy<'a> {
    /// The words' vectors, row by row.
    pub vectors: &'a [f64],
    /// Numbers in a vector.
    pub dim: usize,
    /// Of the noise, in the units of the vectors.
    pub scale: f64,
    /// Of all draws.
    pub seed: u64,
}

/// Fills `out` with noisy vectors and `coins` with a uniform number each, for the draws from `start`
/// on; draw i is on word `inputs[i % inputs.len()]`.
///
/// The direction is that of a vector of normal numbers; the length, Gamma(dim, scale), is the sum of
/// dim exponential numbers. All are the samplers' own, so that every CPU gives the same bits.
///
/// # Errors
///
/// Sizes that do not fit, a scale that no noise has, an input that is not a word; options out of
/// range; [`Error::Interrupted`].
pub fn add_noise(
    noisy: Noisy<'_>,
    inputs: &[i64],
    start: u64,
    (out, coins): (&mut [f64], &mut [f64]),
    options: &Options<'_>,
) -> Result<(), Error> {
    let Noisy { vectors, dim, scale, seed } = noisy;
    let (_, threads, stop) = options.settle()?;
    if dim == 0 || !vectors.len().is_multiple_of(dim) {
        return Err(Error::invalid("vectors", format!("rows of {dim}"), vectors.len()));
    }
    if out.len() != coins.len().saturating_mul(dim) {
        return Err(Error::invalid("out", format!("{} rows of {dim}", coins.len()), out.len()));
    }
    check_inputs(inputs, vectors.len() / dim)?;
    let zeros = vec![0.0; dim];
    let normals = Job::new(Mechanism::new(Gaussian::new(1.0)?), &zeros)?.seed(seed);
    let lengths = Job::new(Mechanism::new(Exponential::new(scale)?), &zeros)?;
    let lengths = lengths.seed(seed).side(Side::XPrime);
    let uniform = Job::new(Mechanism::new(Uniform::new(0.0, 1.0)?), &[0.0])?.seed(seed);
    sample(&normals, out, start, options)?;
    sample(&uniform.purpose(Purpose::Selection), coins, start, options)?;
    let rows = (NUMBERS / dim).max(1);
    let parts = out.chunks_mut(rows * dim).enumerate();
    let alone = Options::new().threads(1).stop(stop);
    let work = |room: &mut Vec<f64>, (part, out): (usize, &mut [f64])| {
        let first = start + (part * rows) as u64;
        room.resize(out.len(), 0.0);
        // Nothing but an interrupt can go wrong: the job and the size are those of `normals`.
        if sample(&lengths, room, first, &alone).is_err() {
            return;
        }
        for (i, (row, parts)) in out.chunks_exact_mut(dim).zip(room.chunks_exact(dim)).enumerate() {
            let place = (first + i as u64) % inputs.len() as u64;
            let word = inputs[place as usize] as usize;
            place_noise(row, parts, &vectors[word * dim..][..dim], &zeros);
        }
    };
    each(parts, threads, stop, work, |_, _| ()).map(|_| ())
}

/// Gives the direction in `row` the length that `parts` add up to, and moves it to `centre`.
fn place_noise(row: &mut [f64], parts: &[f64], centre: &[f64], zeros: &[f64]) {
    let norm = squared(row, zeros).sqrt();
    if norm == 0.0 {
        // No direction, one row in 2^50 and in one dimension alone: any will do.
        row[0] = 1.0;
    }
    let factor = parts.iter().sum::<f64>() / if norm == 0.0 { 1.0 } else { norm };
    for (value, centre) in row.iter_mut().zip(centre) {
        *value = *value * factor + centre;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(dim: usize, size: usize, threads: usize) -> (Vec<f64>, Vec<f64>) {
        let vectors = vec![0.0; dim];
        let noisy = Noisy { vectors: &vectors, dim, scale: 0.5, seed: 3 };
        let (mut out, mut coins) = (vec![0.0; size * dim], vec![0.0; size]);
        let options = Options::new().threads(threads);
        add_noise(noisy, &[0], 0, (&mut out, &mut coins), &options).unwrap();
        (out, coins)
    }

    #[test]
    fn lengths_are_gamma_and_directions_uniform() {
        for dim in [1, 2, 5, 40] {
            let size = 200_000;
            let (out, _) = noise(dim, size, 2);
            let lengths = out.chunks_exact(dim).map(|row| row.iter().map(|x| x * x).sum::<f64>());
            let mean = lengths.map(f64::sqrt).sum::<f64>() / size as f64;
            let shape = dim as f64;
            // Gamma(dim, 1/2): mean dim / 2, variance dim / 4; six standard errors. Gamma(1), the
            // usual mistake, has the mean 1/2.
            assert!((mean - shape / 2.0).abs() < 6.0 * shape.sqrt() / 2.0 / (size as f64).sqrt());
            for c in 0..dim {
                let up = out.iter().skip(c).step_by(dim).filter(|&&value| value > 0.0).count();
                let deviation = (up as f64 / size as f64 - 0.5).abs();
                assert!(deviation < 3.0 / (size as f64).sqrt(), "{dim} {c} {deviation}");
            }
        }
    }

    #[test]
    fn neither_threads_nor_parts_change_a_bit() {
        let (whole, coins) = noise(3, 100_000, 1);
        assert_eq!(noise(3, 100_000, 4), (whole.clone(), coins.clone()));
        let vectors = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0];
        let noisy = Noisy { vectors: &vectors, dim: 3, scale: 0.5, seed: 3 };
        let (mut part, mut coin) = (vec![0.0; 30], vec![0.0; 10]);
        let out = (&mut part[..], &mut coin[..]);
        add_noise(noisy, &[1, 1, 0], 60_001, out, &Options::new()).unwrap();
        assert_eq!(coin, coins[60_001..60_011]);
        for (i, row) in part.chunks_exact(3).enumerate() {
            let word = [1, 1, 0][(60_001 + i) % 3];
            for c in 0..3 {
                let noise = row[c] - vectors[3 * word + c];
                assert!((noise - whole[3 * (60_001 + i) + c]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let options = Options::new();
        let vectors = [0.0; 4];
        let sound = Noisy { vectors: &vectors, dim: 2, scale: 1.0, seed: 1 };
        let fill = |noisy: Noisy<'_>, inputs: &[i64], numbers: usize| {
            let (mut out, mut coins) = (vec![0.0; numbers], [0.0; 3]);
            add_noise(noisy, inputs, 0, (&mut out, &mut coins), &options)
        };
        assert!(fill(sound, &[0, 1], 6).is_ok());
        assert!(fill(sound, &[2], 6).is_err() && fill(sound, &[], 6).is_err());
        assert!(fill(sound, &[0], 5).is_err());
        assert!(fill(Noisy { dim: 3, ..sound }, &[0], 9).is_err());
        assert!(fill(Noisy { dim: 0, ..sound }, &[0], 0).is_err());
        assert!(fill(Noisy { scale: 0.0, ..sound }, &[0], 6).is_err());
    }
}
