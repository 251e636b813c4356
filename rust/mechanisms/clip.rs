//! Clipping to a ball.

use crate::error::Error;

use super::draw::positive;

/// The norm of a ball.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Norm {
    /// Sum of magnitudes.
    L1,
    /// Euclidean length.
    L2,
}

impl Norm {
    /// The norm called "l1" or "l2", as Python does.
    #[cfg(any(feature = "python", test))]
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        match name {
            "l1" => Ok(Self::L1),
            "l2" => Ok(Self::L2),
            _ => Err(Error::invalid("norm", "\"l1\" or \"l2\"", name)),
        }
    }
}

/// x -> x min(1, C/|x|): the input is scaled back onto the ball of radius C if it lies outside.
///
/// ```
/// use dpcore::{Clip, Norm};
///
/// let mut x = [3.0, -4.0];
/// Clip::new(Norm::L2, 1.0)?.apply(&mut x);
/// assert_eq!(x, [0.6, -0.8]);
/// # Ok::<(), dpcore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    norm: Norm,
    radius: f64,
}

impl Clip {
    /// Clipping in a norm to a radius, in the units of the input.
    ///
    /// # Errors
    ///
    /// A radius that is not a finite number above 0 and at most 1e300.
    pub fn new(norm: Norm, radius: f64) -> Result<Self, Error> {
        Ok(Self { norm, radius: positive("radius", radius)? })
    }

    /// Clips in place.
    ///
    /// Entries are divided by the largest magnitude first, so that neither squares nor sums
    /// overflow or vanish.
    pub fn apply(self, x: &mut [f64]) {
        let largest = x.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
        if largest == 0.0 {
            return;
        }
        let parts = x.iter().map(|entry| (entry / largest).abs());
        let relative = match self.norm {
            Norm::L1 => parts.sum::<f64>(),
            Norm::L2 => parts.map(|part| part * part).sum::<f64>().sqrt(),
        };
        // |x| = largest * relative; compared without forming it, since it may overflow.
        if relative > self.radius / largest {
            for entry in x {
                *entry = *entry / largest / relative * self.radius;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(norm: &str, radius: f64, x: &[f64]) -> Vec<f64> {
        let mut x = x.to_vec();
        Clip::new(Norm::named(norm).unwrap(), radius).unwrap().apply(&mut x);
        x
    }

    #[test]
    fn a_point_outside_lands_on_the_sphere_and_one_inside_stays() {
        assert_eq!(clipped("l2", 1.0, &[3.0, -4.0]), [0.6, -0.8]);
        assert_eq!(clipped("l1", 7.0, &[6.0, -8.0]), [3.0, -4.0]);
        assert_eq!(clipped("l2", 5.0, &[3.0, -4.0]), [3.0, -4.0]);
        assert_eq!(clipped("l1", 5.0, &[0.0, 0.0]), [0.0, 0.0]);
        for norm in ["l1", "l2"] {
            assert_eq!(clipped(norm, 1.0, &[1.0_f64.next_up()]), [1.0]);
            assert_eq!(clipped(norm, 1.0, &[1.0_f64.next_down()]), [1.0_f64.next_down()]);
        }
    }

    #[test]
    fn extremes_neither_overflow_nor_vanish() {
        let huge = clipped("l2", 1.0, &[1e308, 1e308]);
        assert!(huge.iter().all(|entry| (entry - 0.5_f64.sqrt()).abs() < 1e-15), "{huge:?}");
        assert_eq!(clipped("l1", 1.0, &[1e-320, 0.0]), [1e-320, 0.0]);
        assert_eq!(clipped("l1", 1e300, &[1e308; 4]), [2.5e299; 4]);
    }

    #[test]
    fn bad_arguments_are_named() {
        assert!(Norm::named("linf").unwrap_err().to_string().starts_with("norm must be"));
        assert!(
            Clip::new(Norm::L1, f64::NAN).unwrap_err().to_string().starts_with("radius must be")
        );
    }
}
