//! Comparisons of outputs pushed back, through the samplers, to the random integers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::cyclic::Cyclic;
use super::job::Job;
use crate::error::Error;
use crate::events::Vote;
use crate::mechanisms::{Monotone, Noise};
use crate::pool::each;
use crate::simd::Plain;

/// The comparison pushed back to the random integers.
#[derive(Debug)]
pub(super) struct Limits {
    // The bit is (word ^ flip) > limit.
    pub(super) limit: Cyclic<u64>,
    pub(super) flip: Option<Cyclic<u64>>,
    pub(super) need: i64,
    // Whether a trial that reaches `need` votes for x' or for x.
    pub(super) reached_is_x_prime: bool,
}

impl Limits {
    /// The limits of every coordinate; those of the last few votes of this process are kept.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`]; there are not as many threads.
    pub(super) fn of<N: Monotone>(
        noise: &N,
        job: &Job,
        vote: &Vote<'_>,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Arc<Self>, Error> {
        let asked = || Asked::new(job, vote);
        // Not `lock`: whoever held it when this process was forked does not exist here.
        if let Ok(kept) = KEPT.try_lock()
            && let Some((_, limits)) = kept.iter().find(|(other, _)| other.is(job, vote))
        {
            return Ok(Arc::clone(limits));
        }
        let turns = turning_points(noise, job, vote, threads, stop)?;
        let limits = Arc::new(Self::new::<N>(&turns, vote));
        if (KEEP_FROM..=KEEP_TO).contains(&vote.dim())
            && let Ok(mut kept) = KEPT.try_lock()
        {
            kept.truncate(KEEP - 1);
            kept.insert(0, (asked(), Arc::clone(&limits)));
        }
        Ok(limits)
    }

    /// The limits for a noise's turning points.
    ///
    /// A coordinate whose vote is the same for every integer becomes a bit that is never set and,
    /// if the vote is for x', an allowance on the majority. Where all other coordinates vote
    /// downwards the bits count votes for x, which saves flipping every word.
    fn new<N: Monotone>(turns: &[Turn], vote: &Vote<'_>) -> Self {
        let mut found: Vec<(u64, i8)> = Vec::with_capacity(vote.dim());
        let mut always = 0;
        for (i, &turn) in turns.iter().enumerate() {
            let (_, towards) = vote.entry(i);
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

/// Votes whose limits are kept: the two sides of an audit and of the next one.
const KEEP: usize = 4;

/// Fewer coordinates are not worth a comparison, more not their memory (40 MB a vote).
const KEEP_FROM: usize = 16;
const KEEP_TO: usize = 1 << 20;

static KEPT: Mutex<Vec<(Asked, Arc<Limits>)>> = Mutex::new(Vec::new());

/// All that limits depend on.
struct Asked {
    noise: Noise,
    factor: f64,
    centre: Cyclic<f64>,
    entries: Vec<(u64, i8)>,
}

impl Asked {
    fn new(job: &Job, vote: &Vote<'_>) -> Self {
        let entries = (0..vote.dim()).map(|i| bits(vote.entry(i))).collect();
        let (noise, factor) = (job.mechanism.noise(), job.mechanism.factor());
        Self { noise, factor, centre: job.centre.clone(), entries }
    }

    fn is(&self, job: &Job, vote: &Vote<'_>) -> bool {
        self.noise == job.mechanism.noise()
            && self.factor == job.mechanism.factor()
            && self.entries.len() == vote.dim()
            && self.entries.iter().enumerate().all(|(i, &entry)| {
                entry == bits(vote.entry(i))
                    && self.centre.get(i).to_bits() == job.centre.get(i).to_bits()
            })
    }
}

fn bits((threshold, towards): (f64, i8)) -> (u64, i8) {
    (threshold.to_bits(), towards)
}

/// The first key from which on an output is beyond its threshold: at or above it (`towards` 1)
/// or above it (`towards` -1, whose vote is the complement). `None` if there is none.
type Turn = Option<u64>;

/// Coordinates that a thread takes at once: some hundred microseconds.
const CHUNK: usize = 1 << 10;

/// The turning point of every coordinate; `None` also where it does not vote.
fn turning_points<N: Monotone>(
    noise: &N,
    job: &Job,
    vote: &Vote<'_>,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<Turn>, Error> {
    let mut turns = vec![None; vote.dim()];
    let work = |(): &mut (), (chunk, turns): (usize, &mut [Turn])| {
        let mut last: Option<((u64, u64, i8), Turn)> = None;
        for (i, slot) in (chunk * CHUNK..).zip(turns) {
            let (centre, (threshold, towards)) = (job.centre.get(i), vote.entry(i));
            if towards == 0 {
                continue;
            }
            let name = (centre.to_bits(), threshold.to_bits(), towards);
            *slot = match last {
                Some((same, turn)) if same == name => turn,
                _ => Beyond { noise, centre, factor: job.mechanism.factor(), threshold, towards }
                    .from(),
            };
            last = Some((name, *slot));
        }
    };
    each(turns.chunks_mut(CHUNK).enumerate(), threads, stop, work, |(), ()| ())?;
    Ok(turns)
}

/// Whether outputs are beyond a threshold, as a function of keys.
struct Beyond<'a, N> {
    noise: &'a N,
    centre: f64,
    factor: f64,
    threshold: f64,
    towards: i8,
}

/// Keys below the first are not beyond, keys from the second on are.
type Bracket = (u64, u64);

impl<N: Monotone> Beyond<'_, N> {
    /// The first key that is beyond.
    ///
    /// The closed form says where to look, never what is there: every key on either side of the
    /// answer is decided by the sampler's own code, eight at a time.
    fn from(&self) -> Turn {
        let near = self.noise.key_near(self.noise_needed());
        #[allow(clippy::cast_sign_loss, reason = "a negative guess and NaN become key 0")]
        let near = (near as u64).clamp(3, N::LAST - 3);
        let (first, last) = (near - 3, near + 2);
        let around = [0, first, near - 2, near - 1, near, near + 1, last, N::LAST];
        let (mut low, mut high) = self.narrow((0, N::LAST + 1), around);
        // Outwards, in steps that grow, from the side that the keys looked at have left open.
        if high == first {
            let keys: [u64; 8] =
                std::array::from_fn(|i| high.saturating_sub(1_u64 << (3 * (8 - i))));
            (low, high) = self.narrow((low, high), keys.map(|key| key.max(low)));
        } else if low == last + 1 {
            let keys: [u64; 8] = std::array::from_fn(|i| low + (1_u64 << (3 * (i + 1))));
            (low, high) = self.narrow((low, high), keys.map(|key| key.min(high - 1)));
        }
        self.bisect((low, high))
    }

    /// The first key that is beyond, in a bracket.
    fn bisect(&self, (mut low, mut high): Bracket) -> Turn {
        while low < high {
            let step = (high - low).div_ceil(9);
            let keys = std::array::from_fn(|i| (low + (i as u64 + 1) * step - 1).min(high - 1));
            (low, high) = self.narrow((low, high), keys);
        }
        (high <= N::LAST).then_some(high)
    }

    /// A narrower bracket, by eight keys of it in nondecreasing order.
    #[inline(always)]
    fn narrow(&self, (low, high): Bracket, keys: [u64; 8]) -> Bracket {
        let values = self.noise.value(Plain::<8>, keys.map(|key| key << N::SHIFT));
        let beyond = values.map(|value| self.reached((self.centre + value) * self.factor));
        match beyond.iter().position(|&beyond| beyond) {
            Some(0) => (low, keys[0]),
            Some(first) => (keys[first - 1] + 1, keys[first]),
            None => (keys[7] + 1, high),
        }
    }

    fn reached(&self, output: f64) -> bool {
        if self.towards > 0 { output >= self.threshold } else { output > self.threshold }
    }

    /// About the least noise with which an output is beyond: the sum of centre and noise is
    /// rounded to the least number that is, from half its last place below it on.
    fn noise_needed(&self) -> f64 {
        let mut sum = self.threshold / self.factor;
        if !self.reached(sum * self.factor) {
            sum = sum.next_up();
        }
        (sum - self.centre) - (sum - sum.next_down()) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mechanisms::{
        DpText, DpTextKeep, DpTextResample, Exponential, Identity, Laplace, Mechanism, RandomBits,
        Uniform,
    };

    fn check<N: Monotone>(noise: &N, centre: f64, factor: f64, threshold: f64) {
        for towards in [1, -1] {
            let beyond = Beyond { noise, centre, factor, threshold, towards };
            let all = beyond.bisect((0, N::LAST + 1));
            let case = (std::any::type_name::<N>(), centre, factor, threshold, towards);
            assert_eq!(beyond.from(), all, "{case:?}");
        }
    }

    fn check_all(scale: f64, centre: f64, factor: f64, threshold: f64) {
        check(&Laplace::new(scale).unwrap(), centre, factor, threshold);
        check(&Exponential::new(scale).unwrap(), centre, factor, threshold);
        check(&Uniform::new(-scale, 0.5 * scale).unwrap(), centre, factor, threshold);
        check(&DpText::new(scale).unwrap(), centre, factor, threshold);
        check(&DpTextResample::new(scale).unwrap(), centre, factor, threshold);
        check(&DpTextKeep::new(scale).unwrap(), centre, factor, threshold);
        check(&RandomBits, 0.0, factor, threshold);
        check(&Identity, centre, factor, threshold);
    }

    #[test]
    fn the_edges_are_those_of_the_whole_bisection() {
        for scale in [1.0, 0.3, 1e-300, 1e300, 7e5] {
            for centre in [0.0, -0.0, 0.5, -1.0, 3e8, 1e300, -1e-310, 1e16] {
                for step in [0.0, 1e-320, 1e-9, 0.5, 1.0, -3.0, 36.0, -36.05, 40.0, 1e9] {
                    check_all(scale, centre, 1.0, centre + step * scale);
                    check_all(scale, centre, 0.1, (centre + step * scale) * 0.1);
                }
            }
            for threshold in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0] {
                check_all(scale, 0.0, 1.0, threshold);
            }
        }
        // The closed form says too little, and fewer keys are left below than the largest step.
        check(&Laplace::new(1.0).unwrap(), 7_933_133_528.0, 4.88, 38_713_691_510.5);
    }

    /// The words on either side of each turn, which no draw would ever meet, decide as their
    /// outputs do.
    fn check_words<N: Monotone + Into<Noise>>(noise: N, towards: [i8; 3]) {
        let (job, threshold) = (Job::new(Mechanism::new(noise), &[0.0, 0.25, 0.5]), [0.375; 3]);
        let (job, vote) = (job.unwrap(), Vote::new(&threshold, &towards).unwrap());
        let turns = turning_points(&noise, &job, &vote, 1, &AtomicBool::new(false)).unwrap();
        let limits = Limits::new::<N>(&turns, &vote);
        for (i, turn) in turns.into_iter().enumerate() {
            let flip = limits.flip.as_ref().map_or(0, |flip| flip.get(i));
            let bit = |word| (word ^ flip) > limits.limit.get(i);
            let Some(turn) = turn else {
                assert!(towards[i] == 0 && !bit(0) && !bit(u64::MAX));
                continue;
            };
            let first = turn << N::SHIFT;
            for word in [0, first - 1, first, first + 1, N::LAST << N::SHIFT] {
                let output = job.centre.get(i) + noise.value(Plain::<1>, [word])[0];
                let vote = if towards[i] > 0 { output >= 0.375 } else { output <= 0.375 };
                let name = (i, word, towards);
                assert_eq!(bit(word) == limits.reached_is_x_prime, vote, "{name:?}");
            }
        }
    }

    #[test]
    fn the_words_on_either_side_of_a_turn_are_told_apart() {
        for towards in [[1, 1, 1], [-1, 0, -1], [1, -1, 0], [-1, 1, -1]] {
            check_words(Laplace::new(1.0).unwrap(), towards);
            check_words(Uniform::new(-1.0, 1.0).unwrap(), towards);
        }
    }

    #[test]
    fn limits_that_are_kept_serve_no_other_noise_factor_centre_threshold_or_direction() {
        let (mechanism, threshold) = (Mechanism::new(Laplace::new(1.0).unwrap()), [0.5; 2]);
        let job = |mechanism, x: &[f64]| Job::new(mechanism, x).unwrap();
        let first = job(mechanism, &[0.0; 2]);
        let asked = Asked::new(&first, &Vote::new(&threshold, &[1, 1]).unwrap());
        let is = |job: &Job, threshold: &[f64], towards: &[i8]| {
            asked.is(job, &Vote::new(threshold, towards).unwrap())
        };
        // The name of the stream has no part in them.
        assert!(is(&first.clone().seed(9).block(3).unwrap(), &threshold, &[1, 1]));
        assert!(!is(&first, &threshold, &[1, -1]) && !is(&first, &[0.5, 0.75], &[1, 1]));
        for other in [
            job(mechanism.scaled(2.0).unwrap(), &[0.0; 2]),
            job(Mechanism::new(Laplace::new(2.0).unwrap()), &[0.0; 2]),
            job(Mechanism::new(Exponential::new(1.0).unwrap()), &[0.0; 2]),
            job(mechanism, &[0.0, 0.25]),
        ] {
            assert!(!is(&other, &threshold, &[1, 1]), "{other:?}");
        }
        assert!(!is(&job(mechanism, &[0.0; 3]), &[0.5; 3], &[1; 3]));
    }

    proptest! {
        #[test]
        fn the_search_from_the_closed_form_finds_what_the_whole_bisection_finds(
            scale in -9_f64..9.0, centre in -12_f64..12.0, at in -40_f64..40.0, factor in 0.01_f64..9.0,
        ) {
            let (scale, centre) = (10_f64.powf(scale), 10_f64.powf(centre));
            check_all(scale, centre, factor, (centre + at * scale) * factor);
            check_all(scale, -centre, 1.0, at * scale - centre);
        }
    }
}
