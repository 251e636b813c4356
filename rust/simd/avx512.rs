//! AVX-512 (F, DQ, VL, BW): four 512-bit registers per vector, masks in mask registers.
//!
//! Four, so that four independent chains of operations stand side by side in the program: the
//! logarithm's chain is about 100 cycles long, more than one chain's share of the scheduler.

#![allow(clippy::wildcard_imports, reason = "a hundred intrinsics of one family")]

use std::arch::x86_64::*;

use super::vectors::{SIDE, Simd};

/// Proof that the CPU has these sets.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

type Words = [__m512i; 4];
type Floats = [__m512d; 4];
type Mask = [__mmask8; 4];

impl Avx512 {
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}

/// One intrinsic on all four registers. A macro and not a function of a closure: a closure does not
/// inherit the caller's instruction set, and is then not inlined.
macro_rules! all {
    ($f:path, $a:expr) => {{
        let a = $a;
        // SAFETY: in a method of `Avx512`, a value that only exists where the CPU has the sets.
        unsafe { [$f(a[0]), $f(a[1]), $f(a[2]), $f(a[3])] }
    }};
    ($f:path, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        // SAFETY: as above.
        unsafe { [$f(a[0], b[0]), $f(a[1], b[1]), $f(a[2], b[2]), $f(a[3], b[3])] }
    }};
    ($f:path, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c) = ($a, $b, $c);
        // SAFETY: as above.
        unsafe {
            [$f(a[0], b[0], c[0]), $f(a[1], b[1], c[1]), $f(a[2], b[2], c[2]), $f(a[3], b[3], c[3])]
        }
    }};
}

impl Simd for Avx512 {
    type U = Words;
    type F = Floats;
    type M = Mask;
    const WIDTH: usize = 32;

    #[inline(always)]
    unsafe fn scatter(self, to: *mut u64, places: Words, words: Words) {
        // SAFETY: in a method of `Avx512`; the caller vouches for the places.
        all!(_mm512_i64scatter_epi64::<8>, [to.cast::<i64>(); 4], places, words);
    }
    #[inline(always)]
    fn splat(self, value: u64) -> Words {
        all!(_mm512_set1_epi64, [value.cast_signed(); 4])
    }
    #[inline(always)]
    fn add(self, a: Words, b: Words) -> Words {
        all!(_mm512_add_epi64, a, b)
    }
    #[inline(always)]
    fn xor(self, a: Words, b: Words) -> Words {
        all!(_mm512_xor_si512, a, b)
    }
    #[inline(always)]
    fn xor3(self, a: Words, b: Words, c: Words) -> Words {
        all!(_mm512_ternarylogic_epi64::<0x96>, a, b, c)
    }
    #[inline(always)]
    fn and(self, a: Words, b: Words) -> Words {
        all!(_mm512_and_si512, a, b)
    }
    #[inline(always)]
    fn or(self, a: Words, b: Words) -> Words {
        all!(_mm512_or_si512, a, b)
    }
    #[inline(always)]
    fn shl<const N: u32>(self, a: Words) -> Words {
        all!(_mm512_slli_epi64::<N>, a)
    }
    #[inline(always)]
    fn shr<const N: u32>(self, a: Words) -> Words {
        all!(_mm512_srli_epi64::<N>, a)
    }
    #[inline(always)]
    fn rotl45(self, a: Words) -> Words {
        all!(_mm512_rol_epi64::<45>, a)
    }
    #[inline(always)]
    fn gt(self, a: Words, b: Words) -> Mask {
        all!(_mm512_cmpgt_epu64_mask, a, b)
    }
    #[inline(always)]
    fn top(self, a: Words) -> Mask {
        all!(_mm512_movepi64_mask, a)
    }
    #[inline(always)]
    fn select(self, mask: Mask, a: Words, b: Words) -> Words {
        all!(_mm512_mask_blend_epi64, mask, b, a)
    }

    #[inline(always)]
    fn splatf(self, value: f64) -> Floats {
        all!(_mm512_set1_pd, [value; 4])
    }
    #[inline(always)]
    fn addf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_add_pd, a, b)
    }
    #[inline(always)]
    fn subf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_sub_pd, a, b)
    }
    #[inline(always)]
    fn mulf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_mul_pd, a, b)
    }
    #[inline(always)]
    fn divf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_div_pd, a, b)
    }
    #[inline(always)]
    fn sqrtf(self, a: Floats) -> Floats {
        all!(_mm512_sqrt_pd, a)
    }
    #[inline(always)]
    fn maxf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_max_pd, a, b)
    }
    #[inline(always)]
    fn minf(self, a: Floats, b: Floats) -> Floats {
        all!(_mm512_min_pd, a, b)
    }
    #[inline(always)]
    fn gef(self, a: Floats, b: Floats) -> Mask {
        all!(_mm512_cmp_pd_mask::<_CMP_GE_OQ>, a, b)
    }
    #[inline(always)]
    fn nanf(self, a: Floats) -> Mask {
        all!(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>, a, a)
    }
    #[inline(always)]
    fn selectf(self, mask: Mask, a: Floats, b: Floats) -> Floats {
        all!(_mm512_mask_blend_pd, mask, b, a)
    }
    #[inline(always)]
    fn bits(self, a: Floats) -> Words {
        all!(_mm512_castpd_si512, a)
    }
    #[inline(always)]
    fn float(self, a: Words) -> Floats {
        all!(_mm512_castsi512_pd, a)
    }

    #[inline(always)]
    fn depth53(self, word: Words) -> Floats {
        // Below 0 from the upper end: the logarithm ignores a sign.
        let word = all!(_mm512_max_epu64, word, self.splat(1 << 11));
        all!(_mm512_cvtepi64_pd, all!(_mm512_srai_epi64::<11>, word))
    }
    #[inline(always)]
    fn exponent(self, a: Floats) -> Floats {
        all!(_mm512_getexp_pd, a)
    }

    #[inline(always)]
    fn columns(self, rows: [&[f64; SIDE]; SIDE]) -> [[f64; SIDE]; SIDE] {
        let mut columns = [[0.0; SIDE]; SIDE];
        let (rows_low, rows_high) = rows.split_at(4);
        for (half, columns) in columns.chunks_exact_mut(4).enumerate() {
            // SAFETY: in a method of `Avx512`; eight numbers are read from or written to each row.
            unsafe {
                // Four numbers of row r beside those of row r + 4, then of row r + 1 between them.
                let both: [_; 4] = std::array::from_fn(|r| {
                    let low = _mm256_loadu_pd(rows_low[r][4 * half..].as_ptr());
                    let high = _mm256_loadu_pd(rows_high[r][4 * half..].as_ptr());
                    _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
                });
                let even = [0, 2].map(|r| _mm512_unpacklo_pd(both[r], both[r + 1]));
                let odd = [0, 2].map(|r| _mm512_unpackhi_pd(both[r], both[r + 1]));
                let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
                let last = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
                for (column, (places, pairs)) in
                    columns.iter_mut().zip([(first, even), (first, odd), (last, even), (last, odd)])
                {
                    let values = _mm512_permutex2var_pd(pairs[0], places, pairs[1]);
                    _mm512_storeu_pd(column.as_mut_ptr(), values);
                }
            }
        }
        columns
    }

    #[inline(always)]
    fn andm(self, a: Mask, b: Mask) -> Mask {
        [a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]]
    }
    #[inline(always)]
    fn notm(self, a: Mask) -> Mask {
        [!a[0], !a[1], !a[2], !a[3]]
    }
    #[inline(always)]
    fn mask(self, a: Mask) -> u32 {
        u32::from(a[0]) | (u32::from(a[1]) << 8) | (u32::from(a[2]) << 16) | (u32::from(a[3]) << 24)
    }
}
