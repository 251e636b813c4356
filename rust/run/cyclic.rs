//! Values of the coordinates, laid out for vectors.

use crate::simd::WIDEST;

/// A number of 64 bits.
pub(super) trait Word: Copy {
    fn bits(self) -> u64;
}

impl Word for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Word for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// One value per coordinate, repeated so that a vector's worth from any coordinate on lies
/// side by side.
#[derive(Clone, Debug)]
pub(super) struct Cyclic<T> {
    values: Vec<T>,
    pub(super) period: usize,
}

impl<T: Word> Cyclic<T> {
    pub(super) fn new(period: &[T]) -> Self {
        let values = period.iter().copied().cycle().take(period.len() + WIDEST - 1).collect();
        Self { values, period: period.len() }
    }

    /// The first coordinate's value.
    pub(super) fn first(&self) -> T {
        self.values[0]
    }

    /// Coordinate i's value.
    pub(super) fn get(&self, i: usize) -> T {
        self.values[i]
    }

    /// Whether all coordinates have the same bits: 0 and -0 are two values, a NaN is itself.
    pub(super) fn uniform(&self) -> bool {
        self.values.iter().all(|value| value.bits() == self.values[0].bits())
    }

    /// Where the values from coordinate `at` begin: as many as the widest vector has.
    ///
    /// # Safety
    ///
    /// `at` is below the period.
    #[inline(always)]
    pub(super) unsafe fn at(&self, at: usize) -> *const T {
        debug_assert!(at < self.period && self.values.len() >= self.period + WIDEST - 1);
        // SAFETY: the caller vouches that `at` is below the period, which is below the length.
        unsafe { self.values.as_ptr().add(at) }
    }
}
