//! Vectors of 64-bit lanes: numerical code written once and compiled for every instruction set.
//!
//! All numerical code of the crate is generic over [`Simd`]: the same sequence of exactly rounded
//! IEEE operations runs on AVX-512, AVX2 and plain Rust, so the results are the same to the bit.
//! Nothing here is a fused multiply-add, an approximate reciprocal or a reassociated sum: those
//! are the three ways in which instruction sets come to disagree.

/// Lanes of the widest vector.
pub(crate) const WIDEST: usize = 32;

/// The operations of one instruction set on `WIDTH` 64-bit lanes.
///
/// # Safety
///
/// Every method is `unsafe` for one reason: the caller must run on a CPU that has the instruction
/// set (see [`super::cpu`]). `load` and `store` also need `WIDTH` readable or writable elements
/// at the pointer; no alignment is required.
pub(crate) trait Simd: Copy + 'static {
    /// Words.
    type U: Copy;
    /// Floating-point numbers.
    type F: Copy;
    /// Booleans.
    type M: Copy;
    /// Lanes: 8 or 32.
    const WIDTH: usize;

    unsafe fn load(from: *const u64) -> Self::U;
    unsafe fn store(to: *mut u64, value: Self::U);
    unsafe fn splat(value: u64) -> Self::U;
    unsafe fn add(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn xor(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn xor3(a: Self::U, b: Self::U, c: Self::U) -> Self::U;
    unsafe fn and(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn or(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn shl<const N: u32>(a: Self::U) -> Self::U;
    unsafe fn shr<const N: u32>(a: Self::U) -> Self::U;
    unsafe fn rotl45(a: Self::U) -> Self::U;
    /// Lanes where `a > b` as unsigned integers.
    unsafe fn gt(a: Self::U, b: Self::U) -> Self::M;
    /// Lanes whose highest bit is set.
    unsafe fn top(a: Self::U) -> Self::M;
    /// `a` where the mask holds, `b` elsewhere.
    unsafe fn select(mask: Self::M, a: Self::U, b: Self::U) -> Self::U;

    unsafe fn loadf(from: *const f64) -> Self::F;
    unsafe fn storef(to: *mut f64, value: Self::F);
    unsafe fn splatf(value: f64) -> Self::F;
    unsafe fn addf(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn subf(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mulf(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn divf(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sqrtf(a: Self::F) -> Self::F;
    /// Lane-wise maximum of two numbers, neither of them NaN.
    unsafe fn maxf(a: Self::F, b: Self::F) -> Self::F;
    /// Lanes where `a >= b`; false where either is NaN.
    unsafe fn gef(a: Self::F, b: Self::F) -> Self::M;
    /// Lanes that are NaN.
    unsafe fn nanf(a: Self::F) -> Self::M;
    unsafe fn selectf(mask: Self::M, a: Self::F, b: Self::F) -> Self::F;
    unsafe fn bits(a: Self::F) -> Self::U;
    unsafe fn float(a: Self::U) -> Self::F;

    /// The word's top 53 bits read as a signed integer. Its magnitude is the distance of k/2^53
    /// from the nearer end of [0, 1), in units of 2^-53.
    #[inline(always)]
    unsafe fn signed53(word: Self::U) -> Self::F {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let low = integer::<Self>(Self::and(Self::shr::<11>(word), Self::splat((1 << 52) - 1)));
            let below_one = Self::subf(low, Self::splatf(4_503_599_627_370_496.0));
            Self::selectf(Self::top(word), below_one, low)
        }
    }
    /// floor(log2 |a|) of normal numbers.
    #[inline(always)]
    unsafe fn exponent(a: Self::F) -> Self::F {
        const TWO_52: u64 = 0x4330_0000_0000_0000;
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let biased = Self::and(Self::shr::<52>(Self::bits(a)), Self::splat(0x7ff));
            let shifted = Self::float(Self::or(biased, Self::splat(TWO_52)));
            Self::subf(shifted, Self::splatf(f64::from_bits(TWO_52) + 1023.0))
        }
    }

    unsafe fn andm(a: Self::M, b: Self::M) -> Self::M;
    unsafe fn notm(a: Self::M) -> Self::M;
    /// Lane i of the mask as bit i.
    unsafe fn mask(a: Self::M) -> u32;
}

/// The exact value of an integer below 2^52, or of 2^52 itself, as a floating-point number.
///
/// Added (not or-ed) to the bits of 2^52, an integer j gives the bits of 2^52 + j; for j = 2^52
/// the carry into the exponent gives 2^53, which is right as well.
///
/// # Safety
///
/// The CPU must have the instruction set `S`.
#[inline(always)]
pub(crate) unsafe fn integer<S: Simd>(j: S::U) -> S::F {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    // SAFETY: the caller vouches for the CPU.
    unsafe { S::subf(S::float(S::add(j, S::splat(TWO_52))), S::splatf(f64::from_bits(TWO_52))) }
}
