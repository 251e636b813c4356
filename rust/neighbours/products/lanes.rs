//! Vectors of f32: the products' inner loop written once and compiled for every instruction set.
//!
//! Unlike those of [`crate::simd`], these may differ between instruction sets in their last bits
//! (fused multiply-add where there is one): whoever uses them knows by how much (see
//! [`super::super::frame`]).

#![allow(clippy::wildcard_imports, reason = "intrinsics of one family")]

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
use std::arch::x86_64::*;

/// One register of f32 and how many of them a tile of products takes.
///
/// # Safety
///
/// Every method needs a CPU with the instruction set; `load` and `store` need `LANES` readable or
/// writable numbers.
pub(super) trait Lanes: Copy + 'static {
    type V: Copy;
    const LANES: usize;

    unsafe fn splat(value: f32) -> Self::V;
    unsafe fn load(from: *const f32) -> Self::V;
    unsafe fn store(to: *mut f32, value: Self::V);
    /// a b + c, rounded once or twice.
    unsafe fn multiply_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Lane i of `a - 2b <= c` as bit i; false where one is NaN.
    unsafe fn below(a: Self::V, b: Self::V, c: Self::V) -> u64;
}

/// SSE2 on x86-64, whatever four lanes become elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Lanes for Plain {
    type V = [f32; 4];
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        // SAFETY: the trait's contract gives four readable numbers.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [f32; 4]) {
        // SAFETY: the trait's contract gives four writable numbers.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn multiply_add(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        [a[0] * b[0] + c[0], a[1] * b[1] + c[1], a[2] * b[2] + c[2], a[3] * b[3] + c[3]]
    }
    #[inline(always)]
    unsafe fn below(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> u64 {
        let bit = |i: usize| u64::from(a[i] - 2.0 * b[i] <= c[i]) << i;
        bit(0) | bit(1) | bit(2) | bit(3)
    }
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[derive(Clone, Copy)]
pub(super) struct Fma256;

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
impl Lanes for Fma256 {
    type V = __m256;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the trait's contract gives the CPU and as many numbers.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m256) {
        // SAFETY: the trait's contract gives the CPU and as many numbers.
        unsafe { _mm256_storeu_ps(to, value) }
    }
    #[inline(always)]
    unsafe fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn below(a: __m256, b: __m256, c: __m256) -> u64 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe {
            let value = _mm256_fnmadd_ps(_mm256_set1_ps(2.0), b, a);
            u64::from(_mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(value, c)).cast_unsigned())
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[derive(Clone, Copy)]
pub(super) struct Fma512;

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
impl Lanes for Fma512 {
    type V = __m512;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the trait's contract gives the CPU and as many numbers.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        // SAFETY: the trait's contract gives the CPU and as many numbers.
        unsafe { _mm512_storeu_ps(to, value) }
    }
    #[inline(always)]
    unsafe fn multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn below(a: __m512, b: __m512, c: __m512) -> u64 {
        // SAFETY: the trait's contract gives the CPU.
        unsafe {
            let value = _mm512_fnmadd_ps(_mm512_set1_ps(2.0), b, a);
            u64::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(value, c))
        }
    }
}
