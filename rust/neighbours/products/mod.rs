//! Products of a block of queries and a panel of points, compared with a bound while they are
//! still in registers: no matrix of products is ever written.

mod lanes;

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
use lanes::{Fma256, Fma512};
use lanes::{Lanes, Plain};

use crate::simd::cpu::Cpu;

/// The most queries of a tile.
const WIDEST: usize = 48;

/// The instruction set of the products; not quite [`Cpu`], whose AVX2 does without fused
/// multiply-add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
    Fma256,
    #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
    Fma512,
}

fn set(cpu: Cpu) -> Set {
    #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
    if is_x86_feature_detected!("fma") {
        match cpu {
            Cpu::Avx512 if cpu.available() => return Set::Fma512,
            Cpu::Avx2 if cpu.available() => return Set::Fma256,
            _ => {}
        }
    }
    let _ = cpu;
    Set::Plain
}

/// Queries of a tile: they stand side by side, coordinate after coordinate.
pub(super) fn width(cpu: Cpu) -> usize {
    match set(cpu) {
        Set::Plain => 8,
        #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
        Set::Fma256 => 16,
        #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
        Set::Fma512 => WIDEST,
    }
}

/// Whatever is done with a pair that is within its bound.
pub(super) trait Sink {
    /// Query `i` of the block and point `j` of the panel; may change the bound of query `i`.
    fn hit(&mut self, i: usize, j: usize, product: f32, bounds: &mut [f32]);
}

/// A block against a panel.
pub(super) struct Products<'a, K> {
    pub dim: usize,
    /// Tiles of `width` queries, each dim x width.
    pub queries: &'a [f32],
    /// Points, row by row, and the lower bounds of their norms.
    pub points: &'a [f32],
    pub low: &'a [f32],
    /// For every query, those that fill up the last tile included: a pair is a hit if
    /// `low - 2 product <= bound`, or, where the query's bit is set in `flip` (a word for every
    /// tile), if not.
    pub bounds: &'a mut [f32],
    pub flip: &'a [u64],
    pub sink: &'a mut K,
}

/// Products of a tile and P points, dim x width and P x dim numbers. Each is a function of its own,
/// because what is done with hits, once inlined here, takes registers from the products.
type Multiply = unsafe fn(*const f32, *const f32, usize, &mut Found);

type Found = [[f32; WIDEST]; 8];

impl<K: Sink> Products<'_, K> {
    /// Multiplies, and hands the hits to the sink: for every query in the order of the points.
    pub fn run(self, cpu: Cpu) {
        let width = width(cpu);
        let (tiles, points) = (self.flip.len(), self.low.len());
        assert_eq!(self.queries.len(), tiles * width * self.dim);
        assert_eq!(self.points.len(), points * self.dim);
        assert_eq!(self.bounds.len(), tiles * width);
        match set(cpu) {
            // SAFETY: the CPU has just been asked, the sizes compared.
            #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
            Set::Fma512 => unsafe { run_512(self) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
            Set::Fma256 => unsafe { run_256(self) },
            // SAFETY: plain Rust runs everywhere, and the sizes have been compared.
            Set::Plain => unsafe { self.walk::<Plain, 2, 4>(four_plain, one_plain) },
        }
    }

    /// # Safety
    ///
    /// The CPU must have the instruction set `L`, `many` and `one` be for it and for P points and
    /// one; there must be points, bounds and norms as `run` has checked.
    #[inline(always)]
    unsafe fn walk<L: Lanes, const V: usize, const P: usize>(
        mut self,
        many: Multiply,
        one: Multiply,
    ) {
        let (dim, width) = (self.dim, V * L::LANES);
        let mut found = [[0.0; WIDEST]; 8];
        let tiles = self.queries.chunks_exact(dim * width).zip(self.flip);
        for (tile, (queries, &flip)) in tiles.enumerate() {
            let mut first = 0;
            while first < self.low.len() {
                let whole = first + P <= self.low.len();
                let (multiply, size) = if whole { (many, P) } else { (one, 1) };
                let points = &self.points[first * dim..(first + size) * dim];
                // SAFETY: the caller vouches for the CPU; a tile of queries, `size` points.
                unsafe {
                    multiply(queries.as_ptr(), points.as_ptr(), dim, &mut found);
                    for (j, products) in found[..size].iter().enumerate() {
                        self.compare::<L, V>((tile * width, first + j), products, flip);
                    }
                }
                first += size;
            }
        }
    }

    /// # Safety
    ///
    /// As for `walk`; `base` is the first query of a tile, `j` a point.
    #[inline(always)]
    unsafe fn compare<L: Lanes, const V: usize>(
        &mut self,
        (base, j): (usize, usize),
        products: &[f32; WIDEST],
        flip: u64,
    ) {
        let mut hits = flip;
        // SAFETY: the caller vouches for the CPU; both slices have V x LANES numbers.
        unsafe {
            let low = L::splat(self.low[j]);
            let bounds = self.bounds[base..base + V * L::LANES].as_ptr();
            for place in (0..V * L::LANES).step_by(L::LANES) {
                let product = L::load(products.as_ptr().add(place));
                hits ^= L::below(low, product, L::load(bounds.add(place))) << place;
            }
        }
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            self.sink.hit(base + lane, j, products[lane], self.bounds);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,popcnt,fma")]
unsafe fn run_512<K: Sink>(products: Products<'_, K>) {
    // SAFETY: this function's features are the instruction set's.
    unsafe { products.walk::<Fma512, 3, 8>(eight_512, one_512) }
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[target_feature(enable = "avx2,fma,popcnt")]
unsafe fn run_256<K: Sink>(products: Products<'_, K>) {
    // SAFETY: this function's features are the instruction set's.
    unsafe { products.walk::<Fma256, 2, 6>(six_256, one_256) }
}

macro_rules! multiply {
    ($($name:ident: $lanes:ident, $v:literal, $p:literal $(, $features:literal)?;)*) => {$(
        $(#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))] #[target_feature(enable = $features)])?
        unsafe fn $name(queries: *const f32, points: *const f32, dim: usize, out: &mut Found) {
            // SAFETY: this function's features are the instruction set's.
            unsafe { multiply::<$lanes, $v, $p>(queries, points, dim, out) }
        }
    )*};
}

multiply! {
    eight_512: Fma512, 3, 8, "avx512f,fma";
    one_512: Fma512, 3, 1, "avx512f,fma";
    six_256: Fma256, 2, 6, "avx2,fma";
    one_256: Fma256, 2, 1, "avx2,fma";
    four_plain: Plain, 2, 4;
    one_plain: Plain, 2, 1;
}

/// # Safety
///
/// The CPU must have the instruction set `L`; `queries` has dim x V x LANES numbers, `points`
/// P x dim.
#[inline(always)]
unsafe fn multiply<L: Lanes, const V: usize, const P: usize>(
    queries: *const f32,
    points: *const f32,
    dim: usize,
    out: &mut Found,
) {
    // SAFETY: the caller vouches for the CPU and the sizes; a row of `out` holds V x LANES.
    unsafe {
        let mut sums = [[L::splat(0.0); V]; P];
        for c in 0..dim {
            let mut row = [L::splat(0.0); V];
            for (v, row) in row.iter_mut().enumerate() {
                *row = L::load(queries.add((c * V + v) * L::LANES));
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                let value = L::splat(*points.add(j * dim + c));
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = L::multiply_add(row, value, *sum);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                L::store(out.as_mut_ptr().add(v * L::LANES), sum);
            }
        }
    }
}
