//! Plain Rust: the baseline on x86-64, the only path elsewhere, and the oracle of the others.

use super::vectors::Simd;

/// N lanes of plain Rust, which every CPU has. The baseline takes as many as a register of SSE2
/// or NEON holds: more only move between registers and memory.
#[derive(Clone, Copy)]
pub(crate) struct Plain<const N: usize>;

/// A number of 0s and a top bit that counts: all comparisons of SSE2 give words, none bits.
type Mask<const N: usize> = [u64; N];

#[inline(always)]
fn map<A: Copy, B, const N: usize>(a: [A; N], f: impl Fn(A) -> B) -> [B; N] {
    a.map(f)
}

#[inline(always)]
fn zip<A: Copy, B, const N: usize>(a: [A; N], b: [A; N], f: impl Fn(A, A) -> B) -> [B; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// All ones or all zeros.
#[inline(always)]
fn all(holds: bool) -> u64 {
    if holds { u64::MAX } else { 0 }
}

/// All ones where the top bit is set, else all zeros.
#[inline(always)]
fn spread(top: u64) -> u64 {
    (top.cast_signed() >> 63).cast_unsigned()
}

impl<const N: usize> Simd for Plain<N> {
    type U = [u64; N];
    type F = [f64; N];
    type M = Mask<N>;
    const WIDTH: usize = N;

    #[inline(always)]
    fn splat(self, value: u64) -> [u64; N] {
        [value; N]
    }
    #[inline(always)]
    fn add(self, a: [u64; N], b: [u64; N]) -> [u64; N] {
        zip(a, b, u64::wrapping_add)
    }
    #[inline(always)]
    fn xor(self, a: [u64; N], b: [u64; N]) -> [u64; N] {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn xor3(self, a: [u64; N], b: [u64; N], c: [u64; N]) -> [u64; N] {
        std::array::from_fn(|i| a[i] ^ b[i] ^ c[i])
    }
    #[inline(always)]
    fn and(self, a: [u64; N], b: [u64; N]) -> [u64; N] {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or(self, a: [u64; N], b: [u64; N]) -> [u64; N] {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn shl<const K: u32>(self, a: [u64; N]) -> [u64; N] {
        map(a, |a| a << K)
    }
    #[inline(always)]
    fn shr<const K: u32>(self, a: [u64; N]) -> [u64; N] {
        map(a, |a| a >> K)
    }
    #[inline(always)]
    fn rotl45(self, a: [u64; N]) -> [u64; N] {
        map(a, |a| a.rotate_left(45))
    }
    #[inline(always)]
    fn gt(self, a: [u64; N], b: [u64; N]) -> Mask<N> {
        zip(a, b, |a, b| all(a > b))
    }
    #[inline(always)]
    fn top(self, a: [u64; N]) -> Mask<N> {
        a
    }
    #[inline(always)]
    fn select(self, mask: Mask<N>, a: [u64; N], b: [u64; N]) -> [u64; N] {
        std::array::from_fn(|i| {
            let all = spread(mask[i]);
            (a[i] & all) | (b[i] & !all)
        })
    }

    #[inline(always)]
    fn splatf(self, value: f64) -> [f64; N] {
        [value; N]
    }
    #[inline(always)]
    fn addf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn subf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mulf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn divf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn sqrtf(self, a: [f64; N]) -> [f64; N] {
        map(a, f64::sqrt)
    }
    #[inline(always)]
    fn maxf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn minf(self, a: [f64; N], b: [f64; N]) -> [f64; N] {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn gef(self, a: [f64; N], b: [f64; N]) -> Mask<N> {
        zip(a, b, |a, b| all(a >= b))
    }
    #[inline(always)]
    fn nanf(self, a: [f64; N]) -> Mask<N> {
        map(a, |a| all(a.is_nan()))
    }
    #[inline(always)]
    fn selectf(self, mask: Mask<N>, a: [f64; N], b: [f64; N]) -> [f64; N] {
        self.float(self.select(mask, self.bits(a), self.bits(b)))
    }
    #[inline(always)]
    fn bits(self, a: [f64; N]) -> [u64; N] {
        map(a, f64::to_bits)
    }
    #[inline(always)]
    fn float(self, a: [u64; N]) -> [f64; N] {
        map(a, f64::from_bits)
    }

    #[inline(always)]
    fn andm(self, a: Mask<N>, b: Mask<N>) -> Mask<N> {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn notm(self, a: Mask<N>) -> Mask<N> {
        map(a, |a| !a)
    }
    #[inline(always)]
    fn mask(self, a: Mask<N>) -> u32 {
        (0..N).fold(0, |bits, i| bits | (((a[i] >> 63) as u32) << i))
    }
}
