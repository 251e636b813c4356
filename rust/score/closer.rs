//! How much closer an output is to x than to x'.

use super::checks::check_rows;
use crate::error::Error;
use crate::mechanisms::Norm;

/// Rows scored side by side.
const ROWS: usize = 8;

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
    check_rows(outputs, x.len(), out.len())?;
    if x.len() != x_prime.len() {
        return Err(Error::invalid("x_prime", "as long as x", (x.len(), x_prime.len())));
    }
    if let Some(entry) = x.iter().chain(x_prime).find(|entry| !entry.is_finite()) {
        return Err(Error::invalid("x and x_prime", "finite", entry));
    }
    match norm {
        Norm::L1 => {
            let entries: Vec<_> =
                x.iter().zip(x_prime).map(|(&x, &y)| Between::new(x, y)).collect();
            sum(outputs, &entries, out);
        }
        Norm::L2 => {
            let entries: Vec<_> = x.iter().zip(x_prime).map(|(&x, &y)| Linear::new(x, y)).collect();
            sum(outputs, &entries, out);
        }
    }
    Ok(())
}

/// What one entry of an output adds to its score.
trait Term {
    fn term(&self, value: f64) -> f64;
}

/// |y - x'| - |y - x| = sign(x - x') 2 (y - middle), held between -|x - x'| and |x - x'|.
struct Between {
    middle: f64,
    most: f64,
    sign: f64,
}

impl Between {
    fn new(x: f64, x_prime: f64) -> Self {
        let sign = if x >= x_prime { 1.0 } else { -1.0 };
        Self { middle: x.midpoint(x_prime), most: (x - x_prime).abs(), sign }
    }
}

impl Term for Between {
    #[inline(always)]
    fn term(&self, value: f64) -> f64 {
        let twice = 2.0 * (value - self.middle);
        // Both comparisons are false for NaN, which stays.
        let twice = if twice > self.most { self.most } else { twice };
        self.sign * if twice < -self.most { -self.most } else { twice }
    }
}

/// ((y - x')^2 - (y - x)^2) / 2 = (x - x') (y - middle).
struct Linear {
    middle: f64,
    slope: f64,
}

impl Linear {
    fn new(x: f64, x_prime: f64) -> Self {
        Self { middle: x.midpoint(x_prime), slope: x - x_prime }
    }
}

impl Term for Linear {
    #[inline(always)]
    fn term(&self, value: f64) -> f64 {
        // Zero times infinity would be NaN.
        let agrees = self.slope == 0.0 && !value.is_nan();
        if agrees { 0.0 } else { self.slope * (value - self.middle) }
    }
}

/// Sums the terms of every row in the order of the entries, several rows at a time.
fn sum<T: Term>(outputs: &[f64], entries: &[T], out: &mut [f64]) {
    let dim = entries.len();
    for (rows, scores) in outputs.chunks(ROWS * dim).zip(out.chunks_mut(ROWS)) {
        if let Ok(scores) = <&mut [f64; ROWS]>::try_from(&mut *scores) {
            let mut sums = [0.0; ROWS];
            let mut lines = [rows; ROWS];
            for (row, line) in lines.iter_mut().enumerate() {
                *line = &rows[row * dim..(row + 1) * dim];
            }
            for (i, entry) in entries.iter().enumerate() {
                for (sum, line) in sums.iter_mut().zip(&lines) {
                    *sum += entry.term(line[i]);
                }
            }
            *scores = sums;
        } else {
            for (row, score) in rows.chunks(dim).zip(scores) {
                *score = row.iter().zip(entries).fold(0.0, |sum, (&y, e)| sum + e.term(y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scores(outputs: &[f64], x: &[f64], x_prime: &[f64], norm: Norm) -> Vec<f64> {
        let mut out = vec![f64::NAN; outputs.len() / x.len()];
        closer(outputs, x, x_prime, norm, &mut out).unwrap();
        out
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
