//! How many pairs of random inputs are further apart after clipping than Laplace noise allows for.
//!
//! Pairs stand side by side in the lanes of a stream: every sum over coordinates is a lane's own,
//! in the order of the coordinates, so that no sum is ever split and every instruction set gives
//! the same bits. Pair i is the same whatever the number of pairs.

use crate::error::Error;
use crate::mechanisms::{Draw, Gaussian, Monotone, Norm, Uniform};
use crate::options::Options;
use crate::pool::each;
use crate::random::{LANES, Lanes, Purpose, Stream};
use crate::simd::Simd;
use crate::simd::kernel::{Kernel, dispatch};

/// A distance exceeds 2C if it is above 2C (1 + this).
///
/// Clipping in L1 keeps every distance at most 2C in real numbers. In floating point the norm and
/// the distance are sums of `dim` terms: relative errors of at most (dim + 4) 2^-53 each, which
/// together stay below this up to [`LARGEST_DIM`].
pub const TOLERANCE: f64 = 1e-12;

/// The most entries of a vector.
pub const LARGEST_DIM: usize = 4096;

/// Radius and spread lie between 1/this and this, so that no sum of squares overflows or vanishes.
pub const LARGEST: f64 = 1e100;

/// Pairs of a block: what a thread takes at a time.
const BLOCK: usize = 4 * LANES;

/// What every entry of both vectors is drawn from, independently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law(Kind);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Uniform(Uniform),
    Normal(Gaussian),
}

impl Law {
    /// Uniform between -spread and spread, in the units of the radius.
    ///
    /// # Errors
    ///
    /// A spread that is not from 1e-100 to 1e100.
    pub fn uniform(spread: f64) -> Result<Self, Error> {
        moderate("spread", spread)?;
        Ok(Self(Kind::Uniform(Uniform::new(-spread, spread)?)))
    }

    /// Normal around 0 with a standard deviation in the units of the radius.
    ///
    /// # Errors
    ///
    /// A spread that is not from 1e-100 to 1e100.
    pub fn normal(spread: f64) -> Result<Self, Error> {
        Ok(Self(Kind::Normal(Gaussian::new(moderate("spread", spread)?)?)))
    }

    /// The law called "uniform" or "normal", as Python does.
    #[cfg(any(feature = "python", test))]
    pub(crate) fn named(name: &str, spread: f64) -> Result<Self, Error> {
        match name {
            "uniform" => Self::uniform(spread),
            "normal" => Self::normal(spread),
            _ => Err(Error::invalid("law", "\"uniform\" or \"normal\"", name)),
        }
    }
}

fn moderate(name: &'static str, value: f64) -> Result<f64, Error> {
    if (LARGEST.recip()..=LARGEST).contains(&value) {
        Ok(value)
    } else {
        let requirement = format!("a number from {:e} to {LARGEST:e}", LARGEST.recip());
        Err(Error::invalid(name, requirement, value))
    }
}

/// Pairs of random vectors, each clipped: everything that fixes their distances.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    law: Law,
    norm: Norm,
    radius: f64,
    dim: usize,
    seed: u64,
}

impl Pairs {
    /// Pairs of vectors of `dim` entries, clipped to a radius C in a norm.
    ///
    /// # Errors
    ///
    /// A dimension that is not from 1 to 4096, a radius that is not from 1e-100 to 1e100.
    pub fn new(
        law: Law,
        (norm, radius): (Norm, f64),
        dim: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        let radius = moderate("radius", radius)?;
        if !(1..=LARGEST_DIM).contains(&dim) {
            return Err(Error::invalid("dim", format!("from 1 to {LARGEST_DIM}"), dim));
        }
        Ok(Self { law, norm, radius, dim, seed })
    }

    /// Entries of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }
}

/// Of the first `count` pairs, how many have an L1 distance above 2C (1 + [`TOLERANCE`]) after
/// clipping.
///
/// # Errors
///
/// Options out of range; [`Error::Interrupted`].
pub fn beyond(pairs: &Pairs, count: u64, options: &Options<'_>) -> Result<u64, Error> {
    let (cpu, threads, stop) = options.settle()?;
    let blocks = count.div_ceil(BLOCK as u64) as usize;
    // A thread keeps its room for a group of pairs; the hits are added in the end.
    let work = |(hits, room): &mut (u64, Vec<f64>), block: usize| {
        room.resize(2 * LANES * pairs.dim, 0.0);
        let size = (count - (block * BLOCK) as u64).min(BLOCK as u64) as usize;
        let place = (block as u64, size);
        *hits += match (pairs.law.0, pairs.norm) {
            (Kind::Uniform(law), Norm::L1) => {
                dispatch(cpu, Block::<_, true> { law: Each(law), pairs, place, room })
            }
            (Kind::Uniform(law), Norm::L2) => {
                dispatch(cpu, Block::<_, false> { law: Each(law), pairs, place, room })
            }
            (Kind::Normal(law), Norm::L1) => {
                dispatch(cpu, Block::<_, true> { law, pairs, place, room })
            }
            (Kind::Normal(law), Norm::L2) => {
                dispatch(cpu, Block::<_, false> { law, pairs, place, room })
            }
        };
    };
    let merge = |total: &mut (u64, Vec<f64>), own: (u64, Vec<f64>)| total.0 += own.0;
    each(0..blocks, threads, stop, work, merge).map(|(hits, _)| hits)
}

/// Two values from two words, one entry of both vectors.
trait Two: Copy + Sync {
    fn two<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2];
}

impl Two for Gaussian {
    #[inline(always)]
    fn two<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        self.values(simd, words)
    }
}

/// A noise of one word, taken twice.
#[derive(Clone, Copy)]
struct Each<N>(N);

impl<N: Monotone> Two for Each<N> {
    #[inline(always)]
    fn two<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.0.value(simd, words[0]), self.0.value(simd, words[1])]
    }
}

/// The hits among one block's pairs.
struct Block<'a, N, const L1: bool> {
    law: N,
    pairs: &'a Pairs,
    // Number of the block and of its pairs.
    place: (u64, usize),
    room: &'a mut [f64],
}

impl<N: Two, const L1: bool> Kernel for Block<'_, N, L1> {
    type Result = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let Self { law, pairs, place: (block, size), room } = self;
        let mut stream = Stream::new(pairs.seed, Purpose::Pairs, 0, block);
        let mut hits = 0;
        for first in (0..size).step_by(LANES) {
            for lane in (0..LANES).step_by(S::WIDTH) {
                let left = size.saturating_sub(first + lane);
                if left == 0 {
                    break;
                }
                let mut lanes = stream.load(simd, lane);
                let norms = draw::<S, N, L1>(law, &mut lanes, room, pairs.dim);
                stream.store(lane, lanes);
                let far = far(simd, pairs, norms, room);
                let used = u32::MAX >> (32 - left.min(S::WIDTH));
                hits += u64::from((far & used).count_ones());
            }
        }
        hits
    }
}

/// Draws a vector's worth of pairs into `room`, entry by entry, and gives both norms of each.
///
/// # Panics
///
/// `room` does not hold 2 `dim` vectors.
#[inline(always)]
fn draw<S: Simd, N: Two, const L1: bool>(
    law: N,
    lanes: &mut Lanes<S>,
    room: &mut [f64],
    dim: usize,
) -> [S::F; 2] {
    let simd = lanes.simd;
    let mut sums = [simd.splatf(0.0); 2];
    for to in room[..2 * dim * S::WIDTH].chunks_exact_mut(2 * S::WIDTH) {
        let values = law.two(simd, [lanes.next(), lanes.next()]);
        for (i, (sum, value)) in sums.iter_mut().zip(values).enumerate() {
            let term = if L1 { simd.magnitude(value) } else { simd.mulf(value, value) };
            *sum = simd.addf(*sum, term);
            // SAFETY: `to` has room for two vectors.
            unsafe { simd.storef(to.as_mut_ptr().add(i * S::WIDTH), value) };
        }
    }
    if L1 { sums } else { sums.map(|sum| simd.sqrtf(sum)) }
}

/// The pairs in `room`, of these norms, that are too far apart once clipped: one bit each.
///
/// # Panics
///
/// As for [`draw`].
#[inline(always)]
fn far<S: Simd>(simd: S, pairs: &Pairs, norms: [S::F; 2], room: &[f64]) -> u32 {
    let (radius, one) = (simd.splatf(pairs.radius), simd.splatf(1.0));
    // A norm of 0 divides to infinity, which is not chosen.
    let [x, y] =
        norms.map(|norm| simd.selectf(simd.gef(norm, radius), simd.divf(radius, norm), one));
    let mut distance = simd.splatf(0.0);
    for from in room[..2 * pairs.dim * S::WIDTH].chunks_exact(2 * S::WIDTH) {
        // SAFETY: `from` holds two vectors.
        let (a, b) = unsafe { (simd.loadf(from.as_ptr()), simd.loadf(from[S::WIDTH..].as_ptr())) };
        let gap = simd.subf(simd.mulf(a, x), simd.mulf(b, y));
        distance = simd.addf(distance, simd.magnitude(gap));
    }
    let most = simd.splatf(2.0 * pairs.radius * (1.0 + TOLERANCE));
    simd.mask(simd.notm(simd.gef(most, distance)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::Clip;
    use crate::simd::Plain;
    use crate::simd::cpu::Cpu;

    const LAWS: [(&str, f64); 3] = [("uniform", 10.0), ("normal", 1.0), ("normal", 0.1)];

    fn pairs(law: (&str, f64), norm: &str, dim: usize, seed: u64) -> Pairs {
        let law = Law::named(law.0, law.1).unwrap();
        Pairs::new(law, (Norm::named(norm).unwrap(), 10.0), dim, seed).unwrap()
    }

    fn count(pairs: &Pairs, count: u64, cpu: Cpu, threads: usize) -> u64 {
        beyond(pairs, count, &Options::new().cpu(cpu).threads(threads)).unwrap()
    }

    /// Pair `i`, one word after the other from its own lane.
    fn pair(pairs: &Pairs, i: usize) -> (Vec<f64>, Vec<f64>) {
        let (block, group, lane) = (i / BLOCK, i % BLOCK / LANES, i % LANES);
        let stream = Stream::new(pairs.seed, Purpose::Pairs, 0, block as u64);
        let mut lanes = stream.load(Plain::<1>, lane);
        let mut two = || {
            let words = [lanes.next(), lanes.next()];
            match pairs.law.0 {
                Kind::Uniform(law) => Each(law).two(Plain, words),
                Kind::Normal(law) => law.two(Plain, words),
            }
        };
        let all: Vec<_> = (0..(group + 1) * pairs.dim).map(|_| two()).collect();
        let own = &all[group * pairs.dim..];
        own.iter().map(|[x, y]| (x[0], y[0])).unzip()
    }

    /// The count by vectors and sums, clipped as inside a mechanism.
    fn naive(pairs: &Pairs, norm: &str, count: usize) -> u64 {
        let clip = Clip::new(Norm::named(norm).unwrap(), pairs.radius).unwrap();
        let far = (0..count).filter(|&i| {
            let (mut x, mut y) = pair(pairs, i);
            clip.apply(&mut x);
            clip.apply(&mut y);
            let distance: f64 = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).sum();
            distance > 2.0 * pairs.radius * (1.0 + TOLERANCE)
        });
        far.count() as u64
    }

    #[test]
    fn the_count_is_that_of_a_plain_loop() {
        let mut between = 0;
        for law in LAWS {
            for norm in ["l1", "l2"] {
                for (dim, size) in [(1, 40), (2, 300), (3, 129), (8, 128), (20, 200), (165, 127)] {
                    let pairs = pairs(law, norm, dim, 7);
                    let expected = naive(&pairs, norm, size);
                    for cpu in Cpu::present() {
                        let found = count(&pairs, size as u64, cpu, 1);
                        assert_eq!(found, expected, "{law:?} {norm} {dim} {cpu:?}");
                    }
                    between += u32::from(expected > 0 && expected < size as u64);
                }
            }
        }
        assert!(between >= 5, "the cases say too little: {between}");
    }

    #[test]
    fn the_first_pairs_are_the_same_whatever_the_number() {
        let pairs = pairs(LAWS[0], "l2", 2, 5);
        let counts: Vec<u64> = (0..400).map(|n| count(&pairs, n, Cpu::Baseline, 1)).collect();
        assert_eq!(counts[0], 0);
        assert!(counts.windows(2).all(|two| two[1] - two[0] <= 1));
        assert_eq!(counts[399], naive(&pairs, "l2", 399));
        let other = Pairs { seed: 6, ..pairs };
        assert!((0..400).any(|n| counts[n as usize] != count(&other, n, Cpu::Baseline, 1)));
    }

    #[test]
    fn clipped_in_l1_no_pair_is_too_far_apart() {
        for law in LAWS {
            for (dim, size) in [(1, 2000), (2, 2000), (255, 500), (4096, 130)] {
                assert_eq!(count(&pairs(law, "l1", dim, 1), size, Cpu::Baseline, 1), 0);
            }
        }
        // Without the tolerance rounding is found: the distance is exactly 2C where signs differ.
        let pairs = pairs(LAWS[0], "l1", 2, 1);
        let above = (0..8000).any(|i| {
            let (mut x, mut y) = pair(&pairs, i);
            let clip = Clip::new(Norm::L1, 10.0).unwrap();
            clip.apply(&mut x);
            clip.apply(&mut y);
            x.iter().zip(&y).map(|(a, b)| (a - b).abs()).sum::<f64>() > 20.0
        });
        assert!(above);
    }

    /// The hits among pairs of one entry, the other vector 0: `gaps` beside each other.
    struct Apart<'a> {
        pairs: &'a Pairs,
        gaps: &'a [f64],
    }

    impl Kernel for Apart<'_> {
        type Result = Vec<bool>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<bool> {
            let hits = self.gaps.iter().flat_map(|&gap| {
                let mut room = vec![gap; S::WIDTH];
                room.resize(2 * S::WIDTH, 0.0);
                // Norms below the radius: nothing is scaled, the distance is the gap.
                let hits = far(simd, self.pairs, [simd.splatf(0.0); 2], &room);
                (0..S::WIDTH).map(move |lane| hits >> lane & 1 == 1)
            });
            hits.collect()
        }
    }

    #[test]
    fn beyond_the_tolerance_a_pair_is_too_far_apart_and_below_it_is_not() {
        let most_rounding = 2.0 * (LARGEST_DIM + 4) as f64 * f64::EPSILON / 2.0;
        assert!(most_rounding < TOLERANCE && TOLERANCE < 1.25 * most_rounding);
        let pairs = pairs(LAWS[0], "l1", 1, 1);
        let gaps = [0.0, 0.9e-12, 1.1e-12, 1e-9].map(|excess| 20.0 * (1.0 + excess));
        for cpu in Cpu::present() {
            let hits = dispatch(cpu, Apart { pairs: &pairs, gaps: &gaps });
            let each: Vec<_> = hits.chunks(hits.len() / gaps.len()).collect();
            for (hits, expected) in each.into_iter().zip([false, false, true, true]) {
                assert!(hits.iter().all(|&hit| hit == expected), "{cpu:?} {expected}");
            }
        }
        // Infinities and NaN cannot be drawn; a sum that is either would count as too far.
        let hits =
            dispatch(Cpu::Baseline, Apart { pairs: &pairs, gaps: &[f64::INFINITY, f64::NAN] });
        assert!(hits.into_iter().all(|hit| hit));
    }
}
