//! AVX2: two 256-bit registers per vector, masks as registers of words whose top bit counts.

#![allow(clippy::wildcard_imports, reason = "a hundred intrinsics of one family")]

use std::arch::x86_64::*;

use super::vectors::{SIDE, Simd};

/// Proof that the CPU has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

type Words = [__m256i; 2];
type Floats = [__m256d; 2];
type Mask = Floats;

impl Avx2 {
    pub(super) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")).then_some(Self(()))
    }
}

/// One intrinsic on both registers. A macro and not a function of a closure: a closure does not
/// inherit the caller's instruction set, and is then not inlined.
macro_rules! both {
    ($f:path, $a:expr) => {{
        let a = $a;
        // SAFETY: in a method of `Avx2`, a value that only exists where the CPU has AVX2.
        unsafe { [$f(a[0]), $f(a[1])] }
    }};
    ($f:path, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        // SAFETY: as above.
        unsafe { [$f(a[0], b[0]), $f(a[1], b[1])] }
    }};
    ($f:path, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c) = ($a, $b, $c);
        // SAFETY: as above.
        unsafe { [$f(a[0], b[0], c[0]), $f(a[1], b[1], c[1])] }
    }};
}

impl Simd for Avx2 {
    type U = Words;
    type F = Floats;
    type M = Mask;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(self, value: u64) -> Words {
        both!(_mm256_set1_epi64x, [value.cast_signed(); 2])
    }
    #[inline(always)]
    fn add(self, a: Words, b: Words) -> Words {
        both!(_mm256_add_epi64, a, b)
    }
    #[inline(always)]
    fn xor(self, a: Words, b: Words) -> Words {
        both!(_mm256_xor_si256, a, b)
    }
    #[inline(always)]
    fn xor3(self, a: Words, b: Words, c: Words) -> Words {
        self.xor(self.xor(a, b), c)
    }
    #[inline(always)]
    fn and(self, a: Words, b: Words) -> Words {
        both!(_mm256_and_si256, a, b)
    }
    #[inline(always)]
    fn or(self, a: Words, b: Words) -> Words {
        both!(_mm256_or_si256, a, b)
    }
    #[inline(always)]
    fn shl<const N: u32>(self, a: Words) -> Words {
        // SAFETY: every x86-64 CPU has SSE2.
        let n = unsafe { _mm_cvtsi32_si128(N.cast_signed()) };
        both!(_mm256_sll_epi64, a, [n; 2])
    }
    #[inline(always)]
    fn shr<const N: u32>(self, a: Words) -> Words {
        // SAFETY: every x86-64 CPU has SSE2.
        let n = unsafe { _mm_cvtsi32_si128(N.cast_signed()) };
        both!(_mm256_srl_epi64, a, [n; 2])
    }
    #[inline(always)]
    fn rotl45(self, a: Words) -> Words {
        self.or(self.shl::<45>(a), self.shr::<19>(a))
    }
    #[inline(always)]
    fn gt(self, a: Words, b: Words) -> Mask {
        // AVX2 compares signed integers only: flipping the top bit of both keeps the order.
        let top = self.splat(1 << 63);
        self.float(both!(_mm256_cmpgt_epi64, self.xor(a, top), self.xor(b, top)))
    }
    #[inline(always)]
    fn top(self, a: Words) -> Mask {
        self.float(a)
    }
    #[inline(always)]
    fn select(self, mask: Mask, a: Words, b: Words) -> Words {
        self.bits(self.selectf(mask, self.float(a), self.float(b)))
    }

    #[inline(always)]
    fn splatf(self, value: f64) -> Floats {
        both!(_mm256_set1_pd, [value; 2])
    }
    #[inline(always)]
    fn addf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_add_pd, a, b)
    }
    #[inline(always)]
    fn subf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_sub_pd, a, b)
    }
    #[inline(always)]
    fn mulf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_mul_pd, a, b)
    }
    #[inline(always)]
    fn divf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_div_pd, a, b)
    }
    #[inline(always)]
    fn sqrtf(self, a: Floats) -> Floats {
        both!(_mm256_sqrt_pd, a)
    }
    #[inline(always)]
    fn maxf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_max_pd, a, b)
    }
    #[inline(always)]
    fn minf(self, a: Floats, b: Floats) -> Floats {
        both!(_mm256_min_pd, a, b)
    }
    #[inline(always)]
    fn gef(self, a: Floats, b: Floats) -> Mask {
        both!(_mm256_cmp_pd::<_CMP_GE_OQ>, a, b)
    }
    #[inline(always)]
    fn nanf(self, a: Floats) -> Mask {
        both!(_mm256_cmp_pd::<_CMP_UNORD_Q>, a, a)
    }
    #[inline(always)]
    fn selectf(self, mask: Mask, a: Floats, b: Floats) -> Floats {
        both!(_mm256_blendv_pd, b, a, mask)
    }
    #[inline(always)]
    fn bits(self, a: Floats) -> Words {
        both!(_mm256_castpd_si256, a)
    }
    #[inline(always)]
    fn float(self, a: Words) -> Floats {
        both!(_mm256_castsi256_pd, a)
    }

    #[inline(always)]
    fn columns(self, rows: [&[f64; SIDE]; SIDE]) -> [[f64; SIDE]; SIDE] {
        let mut columns = [[0.0; SIDE]; SIDE];
        for (pair, columns) in columns.chunks_exact_mut(2).enumerate() {
            for (half, rows) in rows.chunks_exact(4).enumerate() {
                // SAFETY: in a method of `Avx2`; two numbers are read from each row and four
                // written to each column.
                unsafe {
                    // Two numbers of row r beside those of row r + 2.
                    let both = [0, 1].map(|r| {
                        let low = _mm_loadu_pd(rows[r][2 * pair..].as_ptr());
                        let high = _mm_loadu_pd(rows[r + 2][2 * pair..].as_ptr());
                        _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high)
                    });
                    let first = _mm256_unpacklo_pd(both[0], both[1]);
                    let second = _mm256_unpackhi_pd(both[0], both[1]);
                    _mm256_storeu_pd(columns[0][4 * half..].as_mut_ptr(), first);
                    _mm256_storeu_pd(columns[1][4 * half..].as_mut_ptr(), second);
                }
            }
        }
        columns
    }

    #[inline(always)]
    fn andm(self, a: Mask, b: Mask) -> Mask {
        both!(_mm256_and_pd, a, b)
    }
    #[inline(always)]
    fn notm(self, a: Mask) -> Mask {
        self.float(self.xor(self.bits(a), self.splat(u64::MAX)))
    }
    #[inline(always)]
    fn mask(self, a: Mask) -> u32 {
        let [low, high] = both!(_mm256_castpd_si256, a);
        // SAFETY: in a method of `Avx2`.
        let packed = unsafe { _mm256_permute4x64_epi64::<0xd8>(_mm256_packs_epi32(low, high)) };
        // One mask of eight: of two masks of four, side by side for four vectors, LLVM makes
        // vectors again, which takes a tenth longer.
        // SAFETY: as above.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(packed)).cast_unsigned() }
    }
}
