//! The integer route: the random integers themselves are compared.

use super::bits::{Bits, Counter, put_bits};
use super::cyclic::Cyclic;
use super::job::{Job, Rows};
use super::sweep::{Sink, Tiles, sweep_keys};
use crate::events::{Counted, Vote};
use crate::mechanisms::Monotone;
use crate::simd::kernel::Kernel;
use crate::simd::{Plain, Simd};

/// The comparison pushed back to the random integers.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    // The bit is (word ^ flip) > limit.
    limit: Cyclic<u64>,
    flip: Option<Cyclic<u64>>,
    need: i64,
    // Whether a trial that reaches `need` votes for x' or for x.
    reached_is_x_prime: bool,
}

impl Limits {
    /// The limits of every coordinate.
    ///
    /// A coordinate whose vote is the same for every integer becomes a bit that is never set and,
    /// if the vote is for x', an allowance on the majority. Where all other coordinates vote
    /// downwards the bits count votes for x, which saves flipping every word.
    pub(super) fn new<N: Monotone>(noise: &N, job: &Job, vote: &Vote<'_>) -> Self {
        let mut found: Vec<(u64, i8)> = Vec::with_capacity(vote.dim());
        let mut always = 0;
        let mut last: Option<((u64, u64, i8), Option<u64>)> = None;
        for i in 0..vote.dim() {
            let (centre, (threshold, towards)) = (job.centre.get(i), vote.entry(i));
            let name = (centre.to_bits(), threshold.to_bits(), towards);
            let turn = match last {
                Some((same, turn)) if same == name => turn,
                _ => turning_point(noise, centre, job.mechanism.factor(), threshold, towards),
            };
            last = Some((name, turn));
            // Constant votes: "beyond" from the first key on, or never.
            let constant = match turn {
                Some(turn) if turn > 0 => None,
                turn => Some(turn.is_some() == (towards > 0)),
            };
            found.push(match (towards, constant, turn) {
                (0, ..) | (_, Some(false), _) => (u64::MAX, 0),
                // Every number votes for x', NaN does not.
                (_, Some(true), _) if N::NAN => (u64::MAX - 1, -1),
                (_, Some(true), _) => {
                    always += 1;
                    (u64::MAX, 0)
                }
                (_, None, turn) => ((turn.unwrap_or(1) << N::SHIFT) - 1, towards),
            });
        }
        let down = found.iter().filter(|(_, towards)| *towards < 0).count();
        let up = found.iter().filter(|(_, towards)| *towards > 0).count();
        let need = vote.majority() - always;
        if down > 0 && up == 0 && !N::NAN {
            let limit: Vec<u64> = found.iter().map(|&(limit, _)| limit).collect();
            // down - ones >= need fails exactly when ones >= down - need + 1.
            return Self {
                limit: Cyclic::new(&limit),
                flip: None,
                need: down as i64 - need + 1,
                reached_is_x_prime: false,
            };
        }
        // word <= limit is !word > !limit - 1; limit < 2^64 - 1 where a coordinate turns at all.
        let limit: Vec<u64> =
            found.iter().map(|&(limit, down)| if down < 0 { !limit - 1 } else { limit }).collect();
        let flip: Vec<u64> =
            found.iter().map(|&(_, down)| if down < 0 { u64::MAX } else { 0 }).collect();
        Self {
            limit: Cyclic::new(&limit),
            flip: (down > 0).then(|| Cyclic::new(&flip)),
            need,
            reached_is_x_prime: true,
        }
    }
}

/// The first key from which on the output is beyond the threshold: at or above it (`towards` 1)
/// or above it (`towards` -1, whose vote is the complement). `None` if there is none.
///
/// Eight keys are tried at a time, through the sampler's own code.
fn turning_point<N: Monotone>(
    noise: &N,
    centre: f64,
    factor: f64,
    threshold: f64,
    towards: i8,
) -> Option<u64> {
    // Keys below `low` are not beyond, keys from `high` on are.
    let (mut low, mut high) = (0, N::LAST + 1);
    while low < high {
        let step = (high - low).div_ceil(9);
        let keys: [u64; 8] =
            std::array::from_fn(|i| (low + (i as u64 + 1) * step - 1).min(high - 1));
        let values = noise.value(Plain::<8>, keys.map(|key| key << N::SHIFT));
        let beyond = values.map(|value| {
            let output = (centre + value) * factor;
            if towards > 0 { output >= threshold } else { output > threshold }
        });
        match beyond.iter().position(|&beyond| beyond) {
            Some(0) => high = keys[0],
            Some(first) => (low, high) = (keys[first - 1] + 1, keys[first]),
            None => low = keys[7] + 1,
        }
    }
    (high <= N::LAST).then_some(high)
}

/// Compares integers. `FLIP` says whether some are flipped, `SAME` that all coordinates are alike
/// and none is.
struct CompareKeys<'a, const NAN: bool, const FLIP: bool, const SAME: bool> {
    limits: &'a Limits,
    first: u64,
    bits: &'a mut Bits,
    nan: &'a mut Bits,
}

impl<S: Simd, const NAN: bool, const FLIP: bool, const SAME: bool> Sink<S, (S::U, S::M)>
    for CompareKeys<'_, NAN, FLIP, SAME>
{
    #[inline(always)]
    unsafe fn put(
        &mut self,
        simd: S,
        draw: usize,
        coordinate: usize,
        (word, number): (S::U, S::M),
    ) {
        // SAFETY: the caller vouches for the draw and the coordinate.
        unsafe {
            let word = match &self.limits.flip {
                Some(flip) if FLIP => simd.xor(word, simd.load(flip.at(coordinate))),
                _ => word,
            };
            let limit = if SAME {
                simd.splat(self.first)
            } else {
                simd.load(self.limits.limit.at(coordinate))
            };
            let mut vote = simd.gt(word, limit);
            if NAN {
                vote = simd.andm(vote, number);
                put_bits::<S>(self.nan, draw, simd.mask(simd.notm(number)));
            }
            put_bits::<S>(self.bits, draw, simd.mask(vote));
        }
    }
}

/// Counts one block's votes by its integers.
pub(super) struct CountKeys<'a, N> {
    pub(super) noise: N,
    pub(super) job: &'a Job,
    pub(super) limits: &'a Limits,
    pub(super) rows: Rows,
}

impl<N: Monotone> Kernel for CountKeys<'_, N> {
    type Result = Counted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Counted {
        let Self { noise, job, limits, rows } = self;
        let first = limits.limit.first();
        let same = limits.limit.uniform() && limits.flip.is_none();
        let mut counter = Counter::new(job.dim(), limits.need, N::NAN);
        let mut stream = job.stream(rows.block);
        for part in Tiles::new(rows, job.dim(), 1) {
            let (bits, nan) = (&mut counter.bits, &mut counter.nan_bits);
            let place = (part.origin, job.dim());
            // SAFETY: the bits have room for a whole tile; a part has the steps and the origin of one.
            unsafe {
                if N::NAN {
                    let mut sink = CompareKeys::<true, true, false> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut stream, part.steps, place, &mut sink);
                } else if same {
                    let mut sink = CompareKeys::<false, false, true> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut stream, part.steps, place, &mut sink);
                } else {
                    let mut sink = CompareKeys::<false, true, false> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut stream, part.steps, place, &mut sink);
                }
            }
            counter.take(part);
        }
        let mut counted = counter.counted();
        if !limits.reached_is_x_prime {
            counted.votes = rows.end - rows.first - counted.votes;
        }
        counted
    }
}
