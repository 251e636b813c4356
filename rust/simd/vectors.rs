//! Vectors of 64-bit lanes: numerical code written once and compiled for every instruction set.
//!
//! All numerical code of the crate is generic over [`Simd`]: the same sequence of exactly rounded
//! IEEE operations runs on AVX-512, AVX2 and plain Rust, so the results are the same to the bit.
//! Nothing here is a fused multiply-add, an approximate reciprocal or a reassociated sum: those
//! are the three ways in which instruction sets come to disagree.

/// Lanes of the widest vector.
pub(crate) const WIDEST: usize = 32;

/// Side of the square that [`Simd::columns`] turns.
pub(crate) const SIDE: usize = 8;

/// The operations of one instruction set on `WIDTH` 64-bit lanes.
///
/// A value of the type only exists where the CPU has the instruction set: whoever holds one may
/// call every method, and code over vectors needs no `unsafe`.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// Words.
    type U: Copy;
    /// Floating-point numbers.
    type F: Copy;
    /// Booleans.
    type M: Copy;
    /// Lanes: a divisor of 32.
    const WIDTH: usize;

    /// # Safety
    ///
    /// There are `WIDTH` readable words at `from`, which need not be aligned.
    #[inline(always)]
    unsafe fn load(self, from: *const u64) -> Self::U {
        const { assert!(size_of::<Self::U>() == 8 * Self::WIDTH) };
        // SAFETY: the caller vouches for the words; every bit pattern is a vector of words.
        unsafe { from.cast::<Self::U>().read_unaligned() }
    }
    /// # Safety
    ///
    /// There are `WIDTH` writable words at `to`, which need not be aligned.
    #[inline(always)]
    unsafe fn store(self, to: *mut u64, value: Self::U) {
        const { assert!(size_of::<Self::U>() == 8 * Self::WIDTH) };
        // SAFETY: the caller vouches for the words.
        unsafe { to.cast::<Self::U>().write_unaligned(value) }
    }
    /// # Safety
    ///
    /// As for [`Simd::load`].
    #[inline(always)]
    unsafe fn loadf(self, from: *const f64) -> Self::F {
        // SAFETY: the caller vouches for the numbers, which have the size of words.
        self.float(unsafe { self.load(from.cast()) })
    }
    /// # Safety
    ///
    /// As for [`Simd::store`].
    #[inline(always)]
    unsafe fn storef(self, to: *mut f64, value: Self::F) {
        // SAFETY: as for `loadf`.
        unsafe { self.store(to.cast(), self.bits(value)) };
    }
    /// Stores each lane's word at a place of its own, counted in words from `to`.
    ///
    /// # Safety
    ///
    /// There is a writable word at each place.
    #[inline(always)]
    unsafe fn scatter(self, to: *mut u64, places: Self::U, words: Self::U) {
        let (mut at, mut from) = ([0; WIDEST], [0; WIDEST]);
        // SAFETY: both have room for the widest vector; the caller vouches for the places.
        unsafe {
            self.store(at.as_mut_ptr(), places);
            self.store(from.as_mut_ptr(), words);
            for (&place, &word) in at[..Self::WIDTH].iter().zip(&from) {
                to.add(place as usize).write(word);
            }
        }
    }

    fn splat(self, value: u64) -> Self::U;
    fn add(self, a: Self::U, b: Self::U) -> Self::U;
    fn xor(self, a: Self::U, b: Self::U) -> Self::U;
    fn xor3(self, a: Self::U, b: Self::U, c: Self::U) -> Self::U;
    fn and(self, a: Self::U, b: Self::U) -> Self::U;
    fn or(self, a: Self::U, b: Self::U) -> Self::U;
    fn shl<const N: u32>(self, a: Self::U) -> Self::U;
    fn shr<const N: u32>(self, a: Self::U) -> Self::U;
    fn rotl45(self, a: Self::U) -> Self::U;
    /// Lanes where `a > b` as unsigned integers.
    fn gt(self, a: Self::U, b: Self::U) -> Self::M;
    /// Lanes whose highest bit is set.
    fn top(self, a: Self::U) -> Self::M;
    /// `a` where the mask holds, `b` elsewhere.
    fn select(self, mask: Self::M, a: Self::U, b: Self::U) -> Self::U;

    fn splatf(self, value: f64) -> Self::F;
    fn addf(self, a: Self::F, b: Self::F) -> Self::F;
    fn subf(self, a: Self::F, b: Self::F) -> Self::F;
    fn mulf(self, a: Self::F, b: Self::F) -> Self::F;
    fn divf(self, a: Self::F, b: Self::F) -> Self::F;
    fn sqrtf(self, a: Self::F) -> Self::F;
    /// `a` where it is the greater, `b` elsewhere: also where either is NaN.
    fn maxf(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a` where it is the lesser, `b` elsewhere: also where either is NaN.
    fn minf(self, a: Self::F, b: Self::F) -> Self::F;
    /// Lanes where `a >= b`; false where either is NaN.
    fn gef(self, a: Self::F, b: Self::F) -> Self::M;
    /// Lanes that are NaN.
    fn nanf(self, a: Self::F) -> Self::M;
    fn selectf(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F;
    fn bits(self, a: Self::F) -> Self::U;
    fn float(self, a: Self::U) -> Self::F;

    /// How far k is from the nearer end of [0, 2^53), where k is the word's top 53 bits, but at
    /// least 1: from 1 to 2^52, with either sign.
    #[inline(always)]
    fn depth53(self, word: Self::U) -> Self::F {
        let low = integer(self, self.and(self.shr::<11>(word), self.splat((1 << 52) - 1)));
        let half = self.splatf(4_503_599_627_370_496.0);
        let end = self.selectf(self.top(word), half, self.splatf(0.0));
        self.maxf(self.magnitude(self.subf(low, end)), self.splatf(1.0))
    }
    /// The number without its sign.
    #[inline(always)]
    fn magnitude(self, a: Self::F) -> Self::F {
        self.float(self.and(self.bits(a), self.splat(u64::MAX >> 1)))
    }
    /// floor(log2 |a|) of normal numbers.
    #[inline(always)]
    fn exponent(self, a: Self::F) -> Self::F {
        const TWO_52: u64 = 0x4330_0000_0000_0000;
        let biased = self.and(self.shr::<52>(self.bits(a)), self.splat(0x7ff));
        let shifted = self.float(self.or(biased, self.splat(TWO_52)));
        self.subf(shifted, self.splatf(f64::from_bits(TWO_52) + 1023.0))
    }

    /// The columns of a square of numbers.
    #[inline(always)]
    fn columns(self, rows: [&[f64; SIDE]; SIDE]) -> [[f64; SIDE]; SIDE] {
        std::array::from_fn(|i| rows.map(|row| row[i]))
    }

    fn andm(self, a: Self::M, b: Self::M) -> Self::M;
    fn notm(self, a: Self::M) -> Self::M;
    /// Lane i of the mask as bit i.
    fn mask(self, a: Self::M) -> u32;
}

/// The exact value of an integer below 2^52, or of 2^52 itself, as a floating-point number.
///
/// Added (not or-ed) to the bits of 2^52, an integer j gives the bits of 2^52 + j; for j = 2^52
/// the carry into the exponent gives 2^53, which is right as well.
#[inline(always)]
pub(crate) fn integer<S: Simd>(simd: S, j: S::U) -> S::F {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    simd.subf(simd.float(simd.add(j, simd.splat(TWO_52))), simd.splatf(f64::from_bits(TWO_52)))
}
