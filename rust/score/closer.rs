//! How much closer an output is to x than to x'.

use super::checks::check_rows;
use crate::error::Error;
use crate::mechanisms::Norm;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};
use crate::simd::{SIDE, Simd};

/// Scores every row y of `outputs` by how much closer it is to `x` than to `x_prime`.
///
/// L1: the sum over entries of |y - x'| - |y - x|. Beyond both x and x' a term is the distance of
/// the two, computed as such: in floating point the difference of the two magnitudes would be that
/// number give or take its last bits, and which, may depend on the input that y was drawn on. An
/// infinite y therefore counts like a large one.
///
/// L2: half the difference of the squared distances, the sum of (x - x') (y - (x + x')/2).
///
/// Entries in which the inputs agree add nothing; NaN in any entry makes the score NaN.
///
/// # Errors
///
/// Lengths that do not fit, or inputs that are not finite.
pub fn closer(
    outputs: &[f64],
    x: &[f64],
    x_prime: &[f64],
    norm: Norm,
    out: &mut [f64],
) -> Result<(), Error> {
    closer_on(Cpu::current()?, outputs, (x, x_prime), norm, out)
}

fn closer_on(
    cpu: Cpu,
    outputs: &[f64],
    (x, x_prime): (&[f64], &[f64]),
    norm: Norm,
    out: &mut [f64],
) -> Result<(), Error> {
    check_rows(outputs, x.len(), out.len())?;
    if x.len() != x_prime.len() {
        return Err(Error::invalid("x_prime", "as long as x", (x.len(), x_prime.len())));
    }
    if let Some(entry) = x.iter().chain(x_prime).find(|entry| !entry.is_finite()) {
        return Err(Error::invalid("x and x_prime", "finite", entry));
    }
    let entries: Vec<_> = x.iter().zip(x_prime).map(|(&x, &y)| Term::new(x, y, norm)).collect();
    dispatch(cpu, Sum { outputs, entries: &entries, out });
    Ok(())
}

/// What one entry of an output adds to its score: slope (y - middle), held between -most and most.
///
/// L1: |y - x'| - |y - x| = sign(x - x') 2 (y - middle), and most is |x - x'|.
///
/// L2: ((y - x')^2 - (y - x)^2) / 2 = (x - x') (y - middle), as large as it may be.
///
/// Where the inputs agree most is 0: the slope times an infinite y would be NaN.
#[derive(Clone, Copy)]
struct Term {
    middle: f64,
    slope: f64,
    most: f64,
}

impl Term {
    fn new(x: f64, x_prime: f64, norm: Norm) -> Self {
        let (slope, most) = match norm {
            Norm::L1 => (if x >= x_prime { 2.0 } else { -2.0 }, (x - x_prime).abs()),
            Norm::L2 if x == x_prime => (1.0, 0.0),
            Norm::L2 => (x - x_prime, f64::INFINITY),
        };
        Self { middle: x.midpoint(x_prime), slope, most }
    }

    #[inline(always)]
    fn at(self, value: f64) -> f64 {
        let term = self.slope * (value - self.middle);
        // Both comparisons are false for NaN, which stays.
        let term = if term > self.most { self.most } else { term };
        if term < -self.most { -self.most } else { term }
    }
}

/// The terms of every row summed in the order of the entries, several rows side by side.
struct Sum<'a> {
    outputs: &'a [f64],
    entries: &'a [Term],
    out: &'a mut [f64],
}

impl Kernel for Sum<'_> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { outputs, entries, out } = self;
        match entries.len() {
            1 => short::<1>(outputs, entries, out),
            2 => short::<2>(outputs, entries, out),
            3 => short::<3>(outputs, entries, out),
            4 => short::<4>(outputs, entries, out),
            _ => long(simd, outputs, entries, out),
        }
    }
}

/// One NaN: which of several a sum keeps is up to the compiler.
#[inline(always)]
fn plain(sum: f64) -> f64 {
    if sum.is_nan() { f64::NAN } else { sum }
}

/// Rows of a length known to the compiler, which then knows how to put them side by side.
#[inline(always)]
fn short<const DIM: usize>(outputs: &[f64], entries: &[Term], out: &mut [f64]) {
    let entries: [Term; DIM] = std::array::from_fn(|i| entries[i]);
    for (row, score) in outputs.as_chunks::<DIM>().0.iter().zip(out) {
        let mut sum = 0.0;
        for (entry, &value) in entries.iter().zip(row) {
            sum += entry.at(value);
        }
        *score = plain(sum);
    }
}

#[inline(always)]
fn long<S: Simd>(simd: S, outputs: &[f64], entries: &[Term], out: &mut [f64]) {
    let dim = entries.len();
    // Where vectors are short, to turn squares costs more than to read columns.
    let squares = if S::WIDTH < SIDE { &[] } else { entries.as_chunks::<SIDE>().0 };
    let done = squares.len() * SIDE;
    let mut groups = outputs.chunks_exact(SIDE * dim);
    let (scores, last) = out.as_chunks_mut::<SIDE>();
    for (rows, scores) in groups.by_ref().zip(scores) {
        let rows: [_; SIDE] = std::array::from_fn(|row| &rows[row * dim..(row + 1) * dim]);
        let blocks = rows.map(|row| row.as_chunks::<SIDE>().0);
        let mut sums = [0.0; SIDE];
        for (i, square) in squares.iter().enumerate() {
            let columns = simd.columns(blocks.map(|blocks| &blocks[i]));
            for (entry, column) in square.iter().zip(&columns) {
                for (sum, &value) in sums.iter_mut().zip(column) {
                    *sum += entry.at(value);
                }
            }
        }
        for (i, entry) in entries.iter().enumerate().skip(done) {
            for (sum, row) in sums.iter_mut().zip(&rows) {
                *sum += entry.at(row[i]);
            }
        }
        *scores = sums.map(plain);
    }
    for (row, score) in groups.remainder().chunks_exact(dim).zip(last) {
        let terms = row.iter().zip(entries).map(|(&value, entry)| entry.at(value));
        *score = plain(terms.fold(0.0, |sum, term| sum + term));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The scores, the same bits on every path.
    fn scores(outputs: &[f64], x: &[f64], x_prime: &[f64], norm: Norm) -> Vec<f64> {
        let on = |cpu| {
            let mut out = vec![-0.0; outputs.len() / x.len()];
            closer_on(cpu, outputs, (x, x_prime), norm, &mut out).unwrap();
            out
        };
        let [first, others @ ..] = &Cpu::present().into_iter().map(on).collect::<Vec<_>>()[..]
        else {
            unreachable!("plain Rust is always there")
        };
        let bits = |scores: &[f64]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
        for other in others {
            assert_eq!(bits(other), bits(first));
        }
        first.clone()
    }

    /// One row, one entry after the other, as the definitions say.
    fn naive(row: &[f64], x: &[f64], x_prime: &[f64], norm: Norm) -> f64 {
        let mut sum = 0.0;
        for ((&y, &x), &x_prime) in row.iter().zip(x).zip(x_prime) {
            let middle = x.midpoint(x_prime);
            sum += match norm {
                _ if y.is_nan() => y,
                Norm::L1 => {
                    let sign = if x >= x_prime { 1.0 } else { -1.0 };
                    let most = (x - x_prime).abs();
                    sign * (2.0 * (y - middle)).clamp(-most, most)
                }
                Norm::L2 if x == x_prime => 0.0,
                Norm::L2 => (x - x_prime) * (y - middle),
            };
        }
        sum
    }

    #[test]
    fn rows_of_every_length_and_number_are_what_a_plain_loop_sums() {
        const ODD: [f64; 8] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e308, -1e308, 5e-324];
        let mut state = 1_u64;
        let mut next = |odd: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let place = (state >> 33) % odd;
            let number = (state >> 40) as f64 / f64::from(1 << 22) - 2.0;
            ODD.get(place as usize).copied().unwrap_or(number)
        };
        for dim in 1..=70 {
            let mut x: Vec<f64> = (0..dim).map(|_| next(u64::MAX)).collect();
            let x_prime: Vec<f64> = (0..dim).map(|_| next(u64::MAX)).collect();
            x[dim / 2] = x_prime[dim / 2];
            for rows in [0, 1, 7, 8, 9, 16, 43] {
                let odd = if rows % 2 == 0 { 200 } else { 5000 };
                let outputs: Vec<f64> = (0..rows * dim).map(|_| next(odd)).collect();
                for norm in [Norm::L1, Norm::L2] {
                    let found = scores(&outputs, &x, &x_prime, norm);
                    for (row, score) in outputs.chunks(dim).zip(found) {
                        let expected = naive(row, &x, &x_prime, norm);
                        let expected = if expected.is_nan() { f64::NAN } else { expected };
                        assert_eq!(score.to_bits(), expected.to_bits(), "{dim} {rows} {norm:?}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn scores_are_the_differences_of_distances(
            x in prop::collection::vec(-3.0..3.0_f64, 5),
            x_prime in prop::collection::vec(-3.0..3.0_f64, 5),
            values in prop::collection::vec(-9.0..9.0_f64, 0..150),
        ) {
            let outputs = &values[..values.len() / 5 * 5];
            let l1 = scores(outputs, &x, &x_prime, Norm::L1);
            let l2 = scores(outputs, &x, &x_prime, Norm::L2);
            for ((row, l1), l2) in outputs.chunks(5).zip(l1).zip(l2) {
                let gaps = |point: &[f64]| -> Vec<f64> {
                    row.iter().zip(point).map(|(y, p)| (y - p).abs()).collect()
                };
                let (near, far) = (gaps(&x), gaps(&x_prime));
                let first: f64 = far.iter().zip(&near).map(|(f, n)| f - n).sum();
                let second: f64 = far.iter().zip(&near).map(|(f, n)| (f * f - n * n) / 2.0).sum();
                prop_assert!((l1 - first).abs() < 1e-12 && (l2 - second).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn beyond_the_inputs_a_term_is_their_distance_to_the_last_bit() {
        for (x, x_prime) in [(0.1, 0.3), (0.3, 0.1), (1.0 / 3.0, 7.1)] {
            for i in 1..2000 {
                let far = 8.0 + f64::from(i) / 7.0;
                let found = scores(&[far, -far], &[x], &[x_prime], Norm::L1);
                let distance = x - x_prime;
                assert_eq!(found, [distance, -distance]);
            }
        }
    }

    #[test]
    fn infinities_count_as_large_and_nan_is_nan() {
        let (x, x_prime) = ([0.0, 5.0], [1.0, 5.0]);
        let rows = [f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, 0.0, f64::NAN];
        let l1 = scores(&rows, &x, &x_prime, Norm::L1);
        assert_eq!(&l1[..2], [-1.0, 1.0]);
        let l2 = scores(&rows, &x, &x_prime, Norm::L2);
        assert_eq!(&l2[..2], [f64::NEG_INFINITY, f64::INFINITY]);
        assert!(l1[2].is_nan() && l2[2].is_nan());
    }

    #[test]
    fn bad_arguments_are_named() {
        let refused = |outputs: &[f64], x: &[f64], x_prime: &[f64], rows: usize| {
            let mut out = vec![0.0; rows];
            closer(outputs, x, x_prime, Norm::L1, &mut out).unwrap_err().to_string()
        };
        assert!(refused(&[], &[], &[], 0).starts_with("outputs must be rows of at least one"));
        assert!(refused(&[0.0; 5], &[0.0; 2], &[0.0; 2], 2).starts_with("outputs must be 2 rows"));
        assert!(refused(&[0.0; 2], &[0.0; 2], &[0.0], 1).starts_with("x_prime must be as long"));
        assert!(
            refused(&[0.0], &[f64::NAN], &[0.0], 1).starts_with("x and x_prime must be finite")
        );
    }
}
