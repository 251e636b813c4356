//! AVX-512 (F, DQ, VL, BW): four 512-bit registers per vector, masks in mask registers.
//!
//! Four, so that four independent chains of operations stand side by side in the program: the
//! logarithm's chain is about 100 cycles long, more than one chain's share of the scheduler.

// Every intrinsic below is sound exactly when the CPU has it: the trait's own contract.
#![allow(clippy::undocumented_unsafe_blocks, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::vectors::Simd;

#[derive(Clone, Copy)]
pub(crate) struct Avx512;

type Words = [__m512i; 4];
type Floats = [__m512d; 4];
type Mask = [__mmask8; 4];

/// One intrinsic on all four registers. A macro and not a function of a closure: a closure does not
/// inherit the caller's instruction set, and is then not inlined.
macro_rules! all {
    ($f:path, $a:expr) => {{
        let a = $a;
        [$f(a[0]), $f(a[1]), $f(a[2]), $f(a[3])]
    }};
    ($f:path, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        [$f(a[0], b[0]), $f(a[1], b[1]), $f(a[2], b[2]), $f(a[3], b[3])]
    }};
    ($f:path, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c) = ($a, $b, $c);
        [$f(a[0], b[0], c[0]), $f(a[1], b[1], c[1]), $f(a[2], b[2], c[2]), $f(a[3], b[3], c[3])]
    }};
}

impl Simd for Avx512 {
    type U = Words;
    type F = Floats;
    type M = Mask;
    const WIDTH: usize = 32;

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Words {
        unsafe {
            [
                _mm512_loadu_si512(from.cast()),
                _mm512_loadu_si512(from.add(8).cast()),
                _mm512_loadu_si512(from.add(16).cast()),
                _mm512_loadu_si512(from.add(24).cast()),
            ]
        }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u64, value: Words) {
        unsafe {
            _mm512_storeu_si512(to.cast(), value[0]);
            _mm512_storeu_si512(to.add(8).cast(), value[1]);
            _mm512_storeu_si512(to.add(16).cast(), value[2]);
            _mm512_storeu_si512(to.add(24).cast(), value[3]);
        }
    }
    #[inline(always)]
    unsafe fn splat(value: u64) -> Words {
        unsafe { [_mm512_set1_epi64(value.cast_signed()); 4] }
    }
    #[inline(always)]
    unsafe fn add(a: Words, b: Words) -> Words {
        unsafe { all!(_mm512_add_epi64, a, b) }
    }
    #[inline(always)]
    unsafe fn xor(a: Words, b: Words) -> Words {
        unsafe { all!(_mm512_xor_si512, a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: Words, b: Words, c: Words) -> Words {
        unsafe { all!(_mm512_ternarylogic_epi64::<0x96>, a, b, c) }
    }
    #[inline(always)]
    unsafe fn and(a: Words, b: Words) -> Words {
        unsafe { all!(_mm512_and_si512, a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: Words, b: Words) -> Words {
        unsafe { all!(_mm512_or_si512, a, b) }
    }
    #[inline(always)]
    unsafe fn shl<const N: u32>(a: Words) -> Words {
        unsafe { all!(_mm512_slli_epi64::<N>, a) }
    }
    #[inline(always)]
    unsafe fn shr<const N: u32>(a: Words) -> Words {
        unsafe { all!(_mm512_srli_epi64::<N>, a) }
    }
    #[inline(always)]
    unsafe fn rotl45(a: Words) -> Words {
        unsafe { all!(_mm512_rol_epi64::<45>, a) }
    }
    #[inline(always)]
    unsafe fn gt(a: Words, b: Words) -> Mask {
        unsafe { all!(_mm512_cmpgt_epu64_mask, a, b) }
    }
    #[inline(always)]
    unsafe fn top(a: Words) -> Mask {
        unsafe { all!(_mm512_movepi64_mask, a) }
    }
    #[inline(always)]
    unsafe fn select(mask: Mask, a: Words, b: Words) -> Words {
        unsafe { all!(_mm512_mask_blend_epi64, mask, b, a) }
    }

    #[inline(always)]
    unsafe fn loadf(from: *const f64) -> Floats {
        unsafe {
            [
                _mm512_loadu_pd(from),
                _mm512_loadu_pd(from.add(8)),
                _mm512_loadu_pd(from.add(16)),
                _mm512_loadu_pd(from.add(24)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn storef(to: *mut f64, value: Floats) {
        unsafe {
            _mm512_storeu_pd(to, value[0]);
            _mm512_storeu_pd(to.add(8), value[1]);
            _mm512_storeu_pd(to.add(16), value[2]);
            _mm512_storeu_pd(to.add(24), value[3]);
        }
    }
    #[inline(always)]
    unsafe fn splatf(value: f64) -> Floats {
        unsafe { [_mm512_set1_pd(value); 4] }
    }
    #[inline(always)]
    unsafe fn addf(a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_add_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn subf(a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_sub_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn mulf(a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_mul_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn divf(a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_div_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn sqrtf(a: Floats) -> Floats {
        unsafe { all!(_mm512_sqrt_pd, a) }
    }
    #[inline(always)]
    unsafe fn maxf(a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_max_pd, a, b) }
    }
    #[inline(always)]
    unsafe fn gef(a: Floats, b: Floats) -> Mask {
        unsafe { all!(_mm512_cmp_pd_mask::<_CMP_GE_OQ>, a, b) }
    }
    #[inline(always)]
    unsafe fn nanf(a: Floats) -> Mask {
        unsafe { all!(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>, a, a) }
    }
    #[inline(always)]
    unsafe fn selectf(mask: Mask, a: Floats, b: Floats) -> Floats {
        unsafe { all!(_mm512_mask_blend_pd, mask, b, a) }
    }
    #[inline(always)]
    unsafe fn bits(a: Floats) -> Words {
        unsafe { all!(_mm512_castpd_si512, a) }
    }
    #[inline(always)]
    unsafe fn float(a: Words) -> Floats {
        unsafe { all!(_mm512_castsi512_pd, a) }
    }

    #[inline(always)]
    unsafe fn signed53(word: Words) -> Floats {
        unsafe { all!(_mm512_cvtepi64_pd, all!(_mm512_srai_epi64::<11>, word)) }
    }
    #[inline(always)]
    unsafe fn exponent(a: Floats) -> Floats {
        unsafe { all!(_mm512_getexp_pd, a) }
    }

    #[inline(always)]
    unsafe fn andm(a: Mask, b: Mask) -> Mask {
        [a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]]
    }
    #[inline(always)]
    unsafe fn notm(a: Mask) -> Mask {
        [!a[0], !a[1], !a[2], !a[3]]
    }
    #[inline(always)]
    unsafe fn mask(a: Mask) -> u32 {
        u32::from(a[0]) | (u32::from(a[1]) << 8) | (u32::from(a[2]) << 16) | (u32::from(a[3]) << 24)
    }
}
