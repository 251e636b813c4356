//! Products of queries and points in bytes, compared with a bound while they are still at hand.
//!
//! AVX-512 with VNNI multiplies and adds 64 bytes in the time of 16 f32. What bytes cannot rule out
//! is left to f32 or to f64; [`codes`] says how wrong they can be.

pub(super) mod codes;
#[cfg(test)]
mod tests;

use codes::{About, Coded, Line, TILE, WIDTH, stride};

use crate::simd::cpu::Cpu;

/// Points multiplied at a time.
const MANY: usize = 8;

/// Whether the CPU has the instruction and the path may use it.
pub(super) fn fast(cpu: Cpu) -> bool {
    #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
    if cpu == Cpu::Avx512 && cpu.available() {
        return is_x86_feature_detected!("avx512vnni");
    }
    let _ = cpu;
    false
}

/// Whatever is done with a pair that is within its bound.
pub(super) trait Sink {
    /// Query `i` of the block and point `j` of the panel; may lower the bound of query `i`.
    fn hit(&mut self, i: usize, j: usize, product: i32, bounds: &mut [f32]);
}

/// A block against a panel.
pub(super) struct Products<'a, K> {
    pub dim: usize,
    pub queries: &'a Coded,
    /// Points, row by row, and what is known of them.
    pub points: &'a [i8],
    pub about: &'a [About],
    /// For every query, those that fill up the last tile included: a pair is a hit if v of
    /// [`codes`] is at most this. Pairs of some points more may be handed over.
    pub bounds: &'a mut [f32],
    pub sink: &'a mut K,
}

type Found = [[i32; WIDTH]; MANY];

/// What the comparison needs of a tile.
struct Lanes<'a> {
    sizes: &'a [f32; WIDTH],
    errors: &'a [f32; WIDTH],
    steps: &'a [f32; WIDTH],
    bounds: &'a [f32; WIDTH],
}

type Multiply = unsafe fn(&[[Line; TILE]], &[i8], &[About], &mut Found);

/// Products of a tile and of [`MANY`] points or one, and their comparison: bit i of a word for query
/// i. Functions of their own, as those of f32 are.
#[derive(Clone, Copy)]
struct Steps {
    many: Multiply,
    one: Multiply,
    compare: unsafe fn(&Found, &[About], &Lanes<'_>) -> [u64; MANY],
}

const PLAIN: Steps = Steps { many: plain::many, one: plain::many, compare: plain::compare };

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
const FAST: Steps =
    Steps { many: vnni::multiply::<8>, one: vnni::multiply::<1>, compare: vnni::compare };

impl<K: Sink> Products<'_, K> {
    /// Multiplies, and hands the hits to the sink: for every query in the order of the points.
    pub fn run(self, cpu: Cpu) {
        let stride = stride(self.dim);
        assert_eq!(self.points.len(), self.about.len() * stride);
        #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
        if fast(cpu) {
            // SAFETY: the CPU has just been asked, and the points are whole rows.
            return unsafe { self.walk(stride, FAST) };
        }
        let _ = cpu;
        // SAFETY: plain Rust runs everywhere.
        unsafe { self.walk(stride, PLAIN) }
    }

    /// # Safety
    ///
    /// The CPU must be able to run `steps`.
    unsafe fn walk(self, stride: usize, steps: Steps) {
        let Self { queries, points, about, bounds, sink, .. } = self;
        let mut found = [[0; WIDTH]; MANY];
        let tiles = queries.tiles.as_chunks::<TILE>().0.chunks_exact(stride / 4);
        for (tile, lines) in tiles.enumerate() {
            let own = tile * WIDTH;
            let mut first = 0;
            while first < about.len() {
                let whole = first + MANY <= about.len();
                let (multiply, size) = if whole { (steps.many, MANY) } else { (steps.one, 1) };
                let now = &about[first..first + size];
                let lanes = Lanes {
                    sizes: lanes(&queries.sizes, own),
                    errors: lanes(&queries.errors, own),
                    steps: lanes(&queries.steps, own),
                    bounds: lanes(bounds, own),
                };
                // SAFETY: the caller vouches for the CPU; as many rows as there are in `now`.
                let hits = unsafe {
                    multiply(
                        lines,
                        &points[first * stride..(first + size) * stride],
                        now,
                        &mut found,
                    );
                    (steps.compare)(&found, now, &lanes)
                };
                for (j, mut hits) in hits.into_iter().enumerate().take(size) {
                    while hits != 0 {
                        let lane = hits.trailing_zeros() as usize;
                        hits &= hits - 1;
                        sink.hit(own + lane, first + j, found[j][lane], bounds);
                    }
                }
                first += size;
            }
        }
    }
}

fn lanes(all: &[f32], first: usize) -> &[f32; WIDTH] {
    all[first..].first_chunk().expect("numbers for every query of a tile")
}

mod plain {
    //! For every CPU: what the tests compare.

    use crate::neighbours::bytes::{About, Found, Lanes, Line, MANY, TILE};

    pub(super) fn many(tile: &[[Line; TILE]], points: &[i8], about: &[About], found: &mut Found) {
        let rows = points.chunks_exact(points.len() / about.len());
        for ((found, about), row) in found.iter_mut().zip(about).zip(rows) {
            found.fill(about.start);
            for (lines, bytes) in tile.iter().zip(row.as_chunks::<4>().0) {
                for (found, codes) in found.iter_mut().zip(lines.iter().flat_map(|line| line.0)) {
                    for (&code, &byte) in codes.iter().zip(bytes) {
                        *found += i32::from(code) * i32::from(byte);
                    }
                }
            }
        }
    }

    pub(super) fn compare(found: &Found, about: &[About], lanes: &Lanes<'_>) -> [u64; MANY] {
        let mut hits = [0; MANY];
        for ((hits, found), about) in hits.iter_mut().zip(found).zip(about) {
            for (i, &product) in found.iter().enumerate() {
                let value = about.low - lanes.sizes[i] * about.error;
                let value = value - lanes.errors[i] * about.length;
                let value = value - lanes.steps[i] * (about.step * product as f32);
                *hits |= u64::from(value <= lanes.bounds[i]) << i;
            }
        }
        hits
    }
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
mod vnni {
    //! AVX-512 with VNNI.

    use std::arch::x86_64::{
        _CMP_LE_OQ, _mm512_cmp_ps_mask, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fnmadd_ps,
        _mm512_load_si512, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32,
        _mm512_set1_ps, _mm512_setzero_si512, _mm512_storeu_si512,
    };

    use crate::neighbours::bytes::{About, Found, Lanes, Line, MANY, TILE};

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn multiply<const P: usize>(
        tile: &[[Line; TILE]],
        points: &[i8],
        about: &[About],
        found: &mut Found,
    ) {
        let stride = 4 * tile.len();
        assert!(points.len() == P * stride && about.len() == P);
        let mut sums = [[_mm512_setzero_si512(); TILE]; P];
        for (sums, about) in sums.iter_mut().zip(about) {
            *sums = [_mm512_set1_epi32(about.start); TILE];
        }
        let points = points.as_ptr();
        for (c, lines) in tile.iter().enumerate() {
            let mut row = [_mm512_setzero_si512(); TILE];
            for (row, line) in row.iter_mut().zip(lines) {
                // SAFETY: a line is 64 bytes, at a multiple of 64.
                *row = unsafe { _mm512_load_si512((&raw const *line).cast()) };
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are P rows of 4 bytes for every line, as compared above.
                let four = unsafe { points.add(j * stride + 4 * c).cast::<i32>().read_unaligned() };
                let four = _mm512_set1_epi32(four);
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = _mm512_dpbusd_epi32(*sum, row, four);
                }
            }
        }
        for (found, sums) in found.iter_mut().zip(sums) {
            for (found, sum) in found.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: sixteen numbers are 64 bytes.
                unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn compare(found: &Found, about: &[About], lanes: &Lanes<'_>) -> [u64; MANY] {
        let mut hits = [0; MANY];
        for ((hits, found), about) in hits.iter_mut().zip(found).zip(about) {
            let (low, error) = (_mm512_set1_ps(about.low), _mm512_set1_ps(about.error));
            let (length, step) = (_mm512_set1_ps(about.length), _mm512_set1_ps(about.step));
            for v in 0..TILE {
                let at = 16 * v;
                // SAFETY: sixteen numbers from `at` on are within the arrays of WIDTH.
                let (product, sizes, errors, steps, bounds) = unsafe {
                    (
                        _mm512_loadu_si512(found.as_ptr().add(at).cast()),
                        _mm512_loadu_ps(lanes.sizes.as_ptr().add(at)),
                        _mm512_loadu_ps(lanes.errors.as_ptr().add(at)),
                        _mm512_loadu_ps(lanes.steps.as_ptr().add(at)),
                        _mm512_loadu_ps(lanes.bounds.as_ptr().add(at)),
                    )
                };
                let value = _mm512_fnmadd_ps(sizes, error, low);
                let value = _mm512_fnmadd_ps(errors, length, value);
                let product = _mm512_mul_ps(step, _mm512_cvtepi32_ps(product));
                let value = _mm512_fnmadd_ps(steps, product, value);
                let within = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(value, bounds);
                *hits |= u64::from(within) << at;
            }
        }
        hits
    }
}
