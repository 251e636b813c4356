//! Plain Rust: the baseline on x86-64, the only path elsewhere, and the oracle of the others.

use super::vectors::Simd;

const OCTET: usize = 8;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

type Words = [u64; OCTET];
type Floats = [f64; OCTET];
type Mask = [bool; OCTET];

#[inline(always)]
fn map<A: Copy, B>(a: [A; OCTET], f: impl Fn(A) -> B) -> [B; OCTET] {
    a.map(f)
}

#[inline(always)]
fn zip<A: Copy, B>(a: [A; OCTET], b: [A; OCTET], f: impl Fn(A, A) -> B) -> [B; OCTET] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    type U = Words;
    type F = Floats;
    type M = Mask;
    const WIDTH: usize = OCTET;

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Words {
        // SAFETY: the trait's contract gives eight readable elements.
        unsafe { from.cast::<Words>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u64, value: Words) {
        // SAFETY: the trait's contract gives eight writable elements.
        unsafe { to.cast::<Words>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn splat(value: u64) -> Words {
        [value; OCTET]
    }
    #[inline(always)]
    unsafe fn add(a: Words, b: Words) -> Words {
        zip(a, b, u64::wrapping_add)
    }
    #[inline(always)]
    unsafe fn xor(a: Words, b: Words) -> Words {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn xor3(a: Words, b: Words, c: Words) -> Words {
        std::array::from_fn(|i| a[i] ^ b[i] ^ c[i])
    }
    #[inline(always)]
    unsafe fn and(a: Words, b: Words) -> Words {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn or(a: Words, b: Words) -> Words {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    unsafe fn shl<const N: u32>(a: Words) -> Words {
        map(a, |a| a << N)
    }
    #[inline(always)]
    unsafe fn shr<const N: u32>(a: Words) -> Words {
        map(a, |a| a >> N)
    }
    #[inline(always)]
    unsafe fn rotl45(a: Words) -> Words {
        map(a, |a| a.rotate_left(45))
    }
    #[inline(always)]
    unsafe fn gt(a: Words, b: Words) -> Mask {
        zip(a, b, |a, b| a > b)
    }
    #[inline(always)]
    unsafe fn top(a: Words) -> Mask {
        map(a, |a| a >> 63 == 1)
    }
    #[inline(always)]
    unsafe fn select(mask: Mask, a: Words, b: Words) -> Words {
        std::array::from_fn(|i| if mask[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn loadf(from: *const f64) -> Floats {
        // SAFETY: the trait's contract gives eight readable elements.
        unsafe { from.cast::<Floats>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn storef(to: *mut f64, value: Floats) {
        // SAFETY: the trait's contract gives eight writable elements.
        unsafe { to.cast::<Floats>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn splatf(value: f64) -> Floats {
        [value; OCTET]
    }
    #[inline(always)]
    unsafe fn addf(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn subf(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mulf(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn divf(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn sqrtf(a: Floats) -> Floats {
        map(a, f64::sqrt)
    }
    #[inline(always)]
    unsafe fn maxf(a: Floats, b: Floats) -> Floats {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn gef(a: Floats, b: Floats) -> Mask {
        zip(a, b, |a, b| a >= b)
    }
    #[inline(always)]
    unsafe fn nanf(a: Floats) -> Mask {
        map(a, f64::is_nan)
    }
    #[inline(always)]
    unsafe fn selectf(mask: Mask, a: Floats, b: Floats) -> Floats {
        std::array::from_fn(|i| if mask[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn bits(a: Floats) -> Words {
        map(a, f64::to_bits)
    }
    #[inline(always)]
    unsafe fn float(a: Words) -> Floats {
        map(a, f64::from_bits)
    }

    #[inline(always)]
    unsafe fn andm(a: Mask, b: Mask) -> Mask {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn notm(a: Mask) -> Mask {
        map(a, |a| !a)
    }
    #[inline(always)]
    unsafe fn mask(a: Mask) -> u32 {
        (0..OCTET).fold(0, |bits, i| bits | (u32::from(a[i]) << i))
    }
}
