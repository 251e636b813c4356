//! How much privacy code really loses on one pair of inputs, certified from counts.
//!
//! A pilot chooses which event is counted and which side goes into the numerator; fresh draws are
//! then counted, and the bound sees nothing but those counts. Every block of draws has a stream of
//! its own, named by seed, purpose, side and number: neither the number of threads nor the CPU
//! changes a count, and a mechanism of the crate has the counts that Python's `dpcore.audit` has
//! for it with `attack=MajorityVote()` and the same seed.

use std::fmt;

use crate::bounds::{Counts, MOST_DRAWS, clopper_pearson, confidence_level, delta_level};
use crate::error::Error;
use crate::events::{Counted, Vote};
use crate::mechanisms::Mechanism;
use crate::options::Options;
use crate::pool::each;
use crate::random::{Purpose, Side};
use crate::run::{self, Job};
use crate::words::Words;

/// The most pilot draws on each side.
const MOST_PILOT: u64 = 1 << 17;

/// Numbers and trials in a block of a function's draws, at most: what a thread takes at a time.
const BLOCK: (usize, usize) = (1 << 17, 1 << 12);

type Function<'a> = dyn Fn(&[f64], &mut Words, &mut [f64]) + Sync + 'a;
type Event<'a> = dyn Fn(&[f64]) -> bool + Sync + 'a;

enum Code<'a> {
    Native(Mechanism),
    Function(Box<Function<'a>>, usize),
}

/// What is audited, and how; [`Request::run`] does it.
#[must_use]
pub struct Request<'a> {
    code: Code<'a>,
    pair: [Vec<f64>; 2],
    event: Option<Box<Event<'a>>>,
    claim: Option<f64>,
    delta: f64,
    confidence: f64,
    seed: u64,
}

/// An audit of a mechanism of this crate on the pair (x, x').
///
/// # Errors
///
/// Inputs that are empty, not finite, of different lengths, or equal.
///
/// ```
/// use dpcore::{Laplace, Mechanism, Options, audit};
///
/// let mechanism = Mechanism::new(Laplace::new(2.0)?);
/// let found = audit::of(mechanism, &[0.0; 3], &[1.0; 3])?
///     .claim(1.0)?
///     .seed(7)
///     .run(100_000, &Options::new())?;
/// assert_eq!((found.counts.k, found.counts.k_prime), (33_770, 66_040));
/// assert!((found.epsilon_lower() - 0.6575).abs() < 5e-5);
/// assert_eq!(found.refuted(), Some(false));
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn of<'a>(mechanism: Mechanism, x: &[f64], x_prime: &[f64]) -> Result<Request<'a>, Error> {
    Request::new(Code::Native(mechanism), x, x_prime)
}

/// An audit of a function of one's own, `(input, words, output)`, on the pair (x, x').
///
/// Its only source of randomness must be `words`, and it must keep nothing from call to call:
/// trials are to be independent, and the same seed is to give the same counts. Every output has as
/// many entries as the inputs, unless [`Request::event`] says otherwise.
///
/// # Errors
///
/// As for [`of`].
///
/// ```
/// use dpcore::{Options, Words, audit};
///
/// // Randomised response that tells the truth too often: ln 9 for a claim of ln 3.
/// let answer = |x: &[f64], words: &mut Words, out: &mut [f64]| {
///     let lie = words.word() < u64::MAX / 10;
///     out[0] = if lie { 1.0 - x[0] } else { x[0] };
/// };
/// let found = audit::of_function(answer, &[0.0], &[1.0])?
///     .claim(3.0_f64.ln())?
///     .run(10_000, &Options::new())?;
/// assert_eq!(found.refuted(), Some(true));
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn of_function<'a>(
    function: impl Fn(&[f64], &mut Words, &mut [f64]) + Sync + 'a,
    x: &[f64],
    x_prime: &[f64],
) -> Result<Request<'a>, Error> {
    Request::new(Code::Function(Box::new(function), x.len()), x, x_prime)
}

impl<'a> Request<'a> {
    fn new(code: Code<'a>, x: &[f64], x_prime: &[f64]) -> Result<Self, Error> {
        for (name, input) in [("x", x), ("x_prime", x_prime)] {
            if input.is_empty() {
                return Err(Error::invalid(name, "of at least one entry", input));
            }
            if let Some(entry) = input.iter().find(|entry| !entry.is_finite()) {
                return Err(Error::invalid(name, "finite in every entry", entry));
            }
        }
        if x.len() != x_prime.len() {
            return Err(Error::invalid("x_prime", "as long as x", (x.len(), x_prime.len())));
        }
        if x == x_prime {
            return Err(Error::invalid("x_prime", "different from x in some entry", x_prime));
        }
        let pair = [x.to_vec(), x_prime.to_vec()];
        Ok(Self { code, pair, event: None, claim: None, delta: 0.0, confidence: 0.95, seed: 0 })
    }

    /// With a claim: the code is said to be (epsilon, delta)-private on this pair.
    ///
    /// # Errors
    ///
    /// A claim that is not a number of at least 0.
    pub fn claim(self, epsilon: f64) -> Result<Self, Error> {
        if epsilon >= 0.0 {
            Ok(Self { claim: Some(epsilon), ..self })
        } else {
            Err(Error::invalid("claim", "a number of at least 0", epsilon))
        }
    }

    /// With the delta of the claim, 0 unless given.
    ///
    /// # Errors
    ///
    /// A delta outside [0, 1).
    pub fn delta(self, delta: f64) -> Result<Self, Error> {
        Ok(Self { delta: delta_level(delta)?, ..self })
    }

    /// With the probability that the bound holds, 0.95 unless given.
    ///
    /// # Errors
    ///
    /// A confidence outside (0, 1).
    pub fn confidence(self, confidence: f64) -> Result<Self, Error> {
        Ok(Self { confidence: confidence_level("confidence", confidence)?, ..self })
    }

    /// With a seed, 0 unless given.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With an event of one's own instead of the majority vote, on outputs of `dim` entries.
    ///
    /// It must be fixed before the audit: one that was chosen on draws of the same seed overclaims.
    ///
    /// # Errors
    ///
    /// No entries, or for a mechanism of this crate others than the input's.
    pub fn event(
        self,
        dim: usize,
        event: impl Fn(&[f64]) -> bool + Sync + 'a,
    ) -> Result<Self, Error> {
        let code = match self.code {
            Code::Native(_) if dim != self.pair[0].len() => {
                let requirement = format!("the input's {}", self.pair[0].len());
                return Err(Error::invalid("dim", requirement, dim));
            }
            Code::Function(..) if dim == 0 => {
                return Err(Error::invalid("dim", "at least 1", dim));
            }
            Code::Function(function, _) => Code::Function(function, dim),
            native @ Code::Native(_) => native,
        };
        Ok(Self { code, event: Some(Box::new(event)), ..self })
    }

    /// Chooses on a pilot of at most one per cent, then counts `trials` fresh draws on each side.
    ///
    /// # Errors
    ///
    /// No trials, or above 2^53; options out of range; [`Error::Interrupted`].
    ///
    /// # Panics
    ///
    /// Where the function or the event does.
    pub fn run(self, trials: u64, options: &Options<'_>) -> Result<Audit, Error> {
        if !(1..=MOST_DRAWS).contains(&trials) {
            return Err(Error::invalid("trials", "from 1 to 2^53", trials));
        }
        let (threshold, towards) = midway(&self.pair);
        let vote = Vote::new(&threshold, &towards)?;
        // A power of two, so that runs of about equal size choose alike.
        let pilot = match trials / 100 {
            0 => 0,
            share => (1 << share.ilog2()).min(MOST_PILOT),
        };
        let (seen, _) = self.counted(&vote, Purpose::Pilot, pilot, options)?;
        let (opposite, direction) = self.chosen(seen, pilot)?;
        let (counts, nan) = self.counted(&vote, Purpose::Count, trials, options)?;
        let counts = if opposite { counts.complement() } else { counts };
        let ordered = if direction == Side::X { counts } else { counts.swapped() };
        let epsilon_lower = clopper_pearson(ordered, self.delta, self.confidence)?;
        let Self { claim, delta, confidence, seed, .. } = self;
        Ok(Audit {
            counts,
            opposite,
            direction,
            nan,
            claim,
            delta,
            confidence,
            seed,
            pilot,
            own_event: self.event.is_some(),
            epsilon_lower,
        })
    }

    /// Whether the opposite event is counted, and which side goes into the numerator: what has the
    /// largest bound on the pilot, among equals the largest ratio, then the first. An event of
    /// one's own is not turned round.
    fn chosen(&self, counts: Counts, pilot: u64) -> Result<(bool, Side), Error> {
        let opposite = counts.complement();
        let mut best = ((false, Side::XPrime), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        if pilot == 0 {
            return Ok(best.0);
        }
        for (choice, ordered) in [
            ((false, Side::XPrime), counts.swapped()),
            ((false, Side::X), counts),
            ((true, Side::XPrime), opposite.swapped()),
            ((true, Side::X), opposite),
        ] {
            if choice.0 && self.event.is_some() {
                continue;
            }
            let bound = clopper_pearson(ordered, self.delta, self.confidence)?;
            let merit = (bound, if self.event.is_some() { 0.0 } else { log_ratio(ordered) });
            if merit > best.1 {
                best = (choice, merit);
            }
        }
        Ok(best.0)
    }

    /// Hits and NaN entries among the first draws of a purpose, on both sides.
    fn counted(
        &self,
        vote: &Vote<'_>,
        purpose: Purpose,
        trials: u64,
        options: &Options<'_>,
    ) -> Result<(Counts, [u64; 2]), Error> {
        let side = |input: &[f64], side| match &self.code {
            Code::Native(mechanism) => {
                let job = Job::new(*mechanism, input)?.seed(self.seed).purpose(purpose).side(side);
                let Some(event) = &self.event else {
                    return run::count(&job, vote, 0..trials, options);
                };
                let (block, alone) = (job.trials_per_block(), options.threads(1));
                let fill = |number, out: &mut [f64]| {
                    run::sample(&job, out, number * block, &alone).is_ok()
                };
                tallied(event, (job.dim(), block), trials, options, fill)
            }
            Code::Function(function, dim) => {
                let block = (BLOCK.0 / dim).clamp(1, BLOCK.1) as u64;
                let fill = |number, out: &mut [f64]| {
                    let mut words = Words::of_block(self.seed, purpose, side, number);
                    out.chunks_exact_mut(*dim).for_each(|out| function(input, &mut words, out));
                    true
                };
                let voted = |output: &[f64]| vote.contains(output);
                let event = self.event.as_deref().unwrap_or(&voted);
                tallied(event, (*dim, block), trials, options, fill)
            }
        };
        let [x, x_prime] = &self.pair;
        let (x, x_prime) = (side(x, Side::X)?, side(x_prime, Side::XPrime)?);
        let counts = Counts { k: x.votes, n: trials, k_prime: x_prime.votes, n_prime: trials };
        Ok((counts, [x.nan, x_prime.nan]))
    }
}

/// Fills block by block and shows every output to the event. What could not be filled is not
/// counted: the work is to stop.
fn tallied(
    event: &Event<'_>,
    (dim, block): (usize, u64),
    trials: u64,
    options: &Options<'_>,
    fill: impl Fn(u64, &mut [f64]) -> bool + Sync,
) -> Result<Counted, Error> {
    let (_, threads, stop) = options.settle()?;
    let work = |total: &mut Counted, number: usize| {
        let number = number as u64;
        let rows = block.min(trials - number * block) as usize;
        let mut outputs = vec![0.0; rows * dim];
        if fill(number, &mut outputs) {
            let hits = outputs.chunks_exact(dim).filter(|output| event(output)).count();
            let nan = outputs.iter().filter(|entry| entry.is_nan()).count();
            *total += Counted { votes: hits as u64, nan: nan as u64 };
        }
    };
    let blocks = 0..trials.div_ceil(block) as usize;
    each(blocks, threads, stop, work, |total, own| *total += own)
}

/// Thresholds midway between the two inputs, and on which side of them x' lies.
///
/// Halving is exact but for subnormal numbers, so x/2 + x'/2 is the midpoint, correctly rounded.
fn midway([x, x_prime]: &[Vec<f64>; 2]) -> (Vec<f64>, Vec<i8>) {
    let towards = |(a, b)| i8::from(b > a) - i8::from(b < a);
    let middle = |(a, b): (&f64, &f64)| if a == b { *a } else { a / 2.0 + b / 2.0 };
    let pairs = || x.iter().zip(x_prime);
    (pairs().map(middle).collect(), pairs().map(towards).collect())
}

/// ln of the ratio of the two frequencies, from exact products: equal ratios stay equal.
fn log_ratio(counts: Counts) -> f64 {
    if counts.k == 0 {
        return f64::NEG_INFINITY;
    }
    let product = |a, b| (u128::from(a) * u128::from(b)) as f64;
    (product(counts.k, counts.n_prime) / product(counts.k_prime, counts.n)).ln()
}

/// The result of an audit; every figure follows from its counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Audit {
    /// How often the event happened, of fresh draws.
    pub counts: Counts,
    /// Whether what was counted is the vote for x, and not the one for x'.
    pub opposite: bool,
    /// The side in the numerator.
    pub direction: Side,
    /// Entries of outputs that were NaN, on x and on x'; they vote for x.
    pub nan: [u64; 2],
    /// The epsilon that the code is said to keep.
    pub claim: Option<f64>,
    /// The delta of the claim.
    pub delta: f64,
    /// The probability that the bound holds.
    pub confidence: f64,
    /// What repeats the audit.
    pub seed: u64,
    /// Draws on each side that chose, and were not counted.
    pub pilot: u64,
    own_event: bool,
    epsilon_lower: f64,
}

impl Audit {
    /// Certified lower bound on epsilon, at `confidence` (Clopper-Pearson).
    #[must_use]
    pub fn epsilon_lower(&self) -> f64 {
        self.epsilon_lower
    }

    /// Whether the bound exceeds the claim; `None` without a claim. That it does not never means
    /// that the code keeps the claim.
    #[must_use]
    pub fn refuted(&self) -> Option<bool> {
        self.claim.map(|claim| self.epsilon_lower > claim)
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.refuted() {
            None => "no claim given",
            Some(true) => "refuted",
            Some(false) => "not refuted by this attack",
        };
        let Counts { k, n, k_prime, n_prime } = self.counts;
        let certified = (self.epsilon_lower, 100.0 * self.confidence);
        writeln!(f, "verdict    {verdict}")?;
        if let Some(claim) = self.claim {
            writeln!(f, "claim      epsilon <= {claim}, delta = {}", self.delta)?;
        }
        writeln!(f, "certified  epsilon >= {:.4} ({} % confidence)", certified.0, certified.1)?;
        let event = match (self.own_event, self.opposite) {
            (true, _) => "an event of one's own",
            (false, true) => "majority vote for x",
            (false, false) => "majority vote for x'",
        };
        let side = if self.direction == Side::X { "x" } else { "x'" };
        writeln!(f, "witness    {event}, {side} in the numerator")?;
        writeln!(f, "counts     {k} of {n} on x, {k_prime} of {n_prime} on x'")?;
        write!(f, "seed       {} ({} pilot draws a side)", self.seed, self.pilot)
    }
}
