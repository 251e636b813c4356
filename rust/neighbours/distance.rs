//! The one distance of the package: direct differences in f64, one fixed order of addition.

/// Numbers that rows may hold; all are exact in f64. There are no others.
pub trait Coordinate: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The same number in f64.
    fn wide(self) -> f64;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Coordinate for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Coordinate for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

pub(super) const LANES: usize = 8;

type Sums = [f64; LANES];

/// Squared Euclidean distance of two rows of equal length.
///
/// Coordinate i goes to partial sum i mod 8; the sums are then added in pairs. No fused
/// multiply-add, so every CPU gives the same bits, and the two arguments may change places.
#[inline(always)]
#[must_use]
pub fn squared<T: Coordinate>(x: &[T], y: &[T]) -> f64 {
    let mut sums = [0.0; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let (rest_x, rest_y) = (xs.remainder(), ys.remainder());
    for (a, b) in xs.zip(ys) {
        sums = added(sums, a, b);
    }
    total(sums, rest_x, rest_y)
}

/// [`squared`] of a row and four others, side by side: a single sum waits for itself.
#[inline(always)]
pub(super) fn squared_four<T: Coordinate>(x: &[T], ys: [&[T]; 4]) -> [f64; 4] {
    let [mut s0, mut s1, mut s2, mut s3] = [[0.0; LANES]; 4];
    let xs = x.chunks_exact(LANES);
    let [y0, y1, y2, y3] = ys.map(|y| y.chunks_exact(LANES));
    let rest = xs.remainder();
    let rests = [y0.remainder(), y1.remainder(), y2.remainder(), y3.remainder()];
    for ((((a, b0), b1), b2), b3) in xs.zip(y0).zip(y1).zip(y2).zip(y3) {
        s0 = added(s0, a, b0);
        s1 = added(s1, a, b1);
        s2 = added(s2, a, b2);
        s3 = added(s3, a, b3);
    }
    let [r0, r1, r2, r3] = rests;
    [total(s0, rest, r0), total(s1, rest, r1), total(s2, rest, r2), total(s3, rest, r3)]
}

#[inline(always)]
fn added<T: Coordinate>(mut sums: Sums, a: &[T], b: &[T]) -> Sums {
    for lane in 0..LANES {
        let difference = a[lane].wide() - b[lane].wide();
        sums[lane] += difference * difference;
    }
    sums
}

#[inline(always)]
fn total<T: Coordinate>(mut sums: Sums, a: &[T], b: &[T]) -> f64 {
    for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
        let difference = a.wide() - b.wide();
        *sum += difference * difference;
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}
