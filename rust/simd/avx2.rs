//! AVX2: two 256-bit registers per vector, masks as registers of all ones or all zeros.

// Every intrinsic below is sound exactly when the CPU has it: the trait's own contract.
#![allow(clippy::undocumented_unsafe_blocks, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::vectors::Simd;

#[derive(Clone, Copy)]
pub(crate) struct Avx2;

type Words = [__m256i; 2];
type Floats = [__m256d; 2];
type Mask = Floats;

/// One intrinsic on both registers. A macro and not a function of a closure: a closure does not
/// inherit the caller's instruction set, and is then not inlined.
macro_rules! both {
    ($f:path, $a:expr) => {{
        let a = $a;
        [$f(a[0]), $f(a[1])]
    }};
    ($f:path, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        [$f(a[0], b[0]), $f(a[1], b[1])]
    }};
    ($f:path, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c) = ($a, $b, $c);
        [$f(a[0], b[0], c[0]), $f(a[1], b[1], c[1])]
    }};
}

impl Simd for Avx2 {
    type U = Words;
    type F = Floats;
    type M = Mask;
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Words {
        unsafe { [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(4).cast())] }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u64, value: Words) {
        unsafe {
            _mm256_storeu_si256(to.cast(), value[0]);
            _mm256_storeu_si256(to.add(4).cast(), value[1]);
        }
    }
    #[inline(always)]
    unsafe fn splat(value: u64) -> Words {
        unsafe { [_mm256_set1_epi64x(value.cast_signed()); 2] }
    }
    #[inline(always)]
    unsafe fn add(a: Words, b: Words) -> Words {
        unsafe { both!(_mm256_add_epi64, a, b) }
    }
    #[inline(always)]
    unsafe fn xor(a: Words, b: Words) -> Words {
        unsafe { both!(_mm256_xor_si256, a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: Words, b: Words, c: Words) -> Words {
        unsafe { Self::xor(Self::xor(a, b), c) }
    }
    #[inline(always)]
    unsafe fn and(a: Words, b: Words) -> Words {
        unsafe { both!(_mm256_and_si256, a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: Words, b: Words) -> Words {
        unsafe { both!(_mm256_or_si256, a, b) }
    }
    #[inline(always)]
    unsafe fn shl<const N: u32>(a: Words) -> Words {
        unsafe {
            let n = _mm_cvtsi32_si128(N.cast_signed());
            both!(_mm256_sll_epi64, a, [n; 2])
        }
    }
    #[inline(always)]
    unsafe fn shr<const N: u32>(a: Words) -> Words {
        unsafe {
            let n = _mm_cvtsi32_si128(N.cast_signed());
            both!(_mm256_srl_epi64, a, [n; 2])
        }
    }
    #[inline(always)]
    unsafe fn rotl45(a: Words) -> Words {
        unsafe { Self::or(Self::shl::<45>(a), Self::shr::<19>(a)) }
    }
    #[inline(always)]
    unsafe fn gt(a: Words, b: Words) -> Mask {
        // AVX2 compares signed integers only: flipping the top bit of both keeps the order.
        unsafe {
            let top = Self::splat(1 << 63);
            Self::float(both!(_mm256_cmpgt_epi64, Self::xor(a, top), Self::xor(b, top)))
        }
    }
    #[inline(always)]
    unsafe fn top(a: Words) -> Mask {
        unsafe { Self::float(both!(_mm256_cmpgt_epi64, Self::splat(0), a)) }
    }
    #[inline(always)]
    unsafe fn select(mask: Mask, a: Words, b: Words) -> Words {
        unsafe { Self::bits(Self::selectf(mask, Self::float(a), Self::float(b))) }
    }

    #[inline(always)]
    unsafe fn loadf(from: *const f64) -> Floats {
        unsafe { [_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))] }
    }
    #[inline(always)]
    unsafe fn storef(to: *mut f64, value: Floats) {
        unsafe {
            _mm256_storeu_pd(to, value[0]);
            _mm256_storeu_pd(to.add(4), value[1]);
        }
    }
    #[inline(always)]
    unsafe fn splatf(value: f64) -> Floats {
        unsafe { [_mm256_set1_pd(value); 2] }
    }
    #[inline(always)]
    unsafe fn addf(a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_add_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn subf(a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_sub_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn mulf(a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_mul_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn divf(a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_div_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn sqrtf(a: Floats) -> Floats {
        unsafe { both!(_mm256_sqrt_pd, a) }
    }
    #[inline(always)]
    unsafe fn maxf(a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_max_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn gef(a: Floats, b: Floats) -> Mask {
        unsafe { both!(_mm256_cmp_pd::<_CMP_GE_OQ>, a, b) }
    }
    #[inline(always)]
    unsafe fn nanf(a: Floats) -> Mask {
        unsafe { both!(_mm256_cmp_pd::<_CMP_UNORD_Q>, a, a) }
    }
    #[inline(always)]
    unsafe fn selectf(mask: Mask, a: Floats, b: Floats) -> Floats {
        unsafe { both!(_mm256_blendv_pd, b, a, mask) }
    }
    #[inline(always)]
    unsafe fn bits(a: Floats) -> Words {
        unsafe { both!(_mm256_castpd_si256, a) }
    }
    #[inline(always)]
    unsafe fn float(a: Words) -> Floats {
        unsafe { both!(_mm256_castsi256_pd, a) }
    }

    #[inline(always)]
    unsafe fn andm(a: Mask, b: Mask) -> Mask {
        unsafe { both!(_mm256_and_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn notm(a: Mask) -> Mask {
        unsafe { Self::float(Self::xor(Self::bits(a), Self::splat(u64::MAX))) }
    }
    #[inline(always)]
    unsafe fn mask(a: Mask) -> u32 {
        let [low, high] = unsafe { both!(_mm256_movemask_pd, a) };
        (low | (high << 4)).cast_unsigned()
    }
}
