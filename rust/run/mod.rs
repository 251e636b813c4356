//! The only trial loops: fill an array, or count votes without one.
//!
//! A block's draws are made in *tiles* of 64 steps of 32 lanes, which stay in the first-level
//! cache. On the **sampled route** a tile's outputs are computed, compared with the thresholds
//! while still in registers, and only one bit of each survives. On the **integer route** the
//! comparison is pushed back through the sampler: its value is a nondecreasing function of an
//! integer, so "output >= threshold" is "integer > limit", with the limit found once by bisection
//! *through the sampler's own floating-point code*. Both give the same bits, hence the same
//! counts.

mod bits;
mod cyclic;
mod integer;
mod job;
mod limits;
mod output;
mod sampled;
mod sweep;

use std::ops::Range;
use std::sync::atomic::Ordering;

pub use job::Job;
pub use output::Real;

use crate::error::Error;
use crate::events::{Counted, Vote};
use crate::mechanisms::{with_monotone, with_noise};
use crate::options::{Options, Route};
use crate::pool::each;
use crate::simd::kernel::dispatch;
use integer::CountKeys;
use job::Rows;
use limits::Limits;
use output::FillBlock;
use sampled::{Compare, CountOutputs, CountRows};

/// Fills `out` with the outputs of the trials from `start` on, row by row.
///
/// # Errors
///
/// `out` is not a whole number of rows, or of f32 where the noise could overflow it; too many trials; options out of range;
/// [`Error::Interrupted`].
///
/// ```
/// use dpcore::{Identity, Job, Mechanism, Options, run};
///
/// let job = Job::new(Mechanism::new(Identity), &[1.0, 2.0])?;
/// let mut out = [0.0_f32; 4]; // two rows
/// run::sample(&job, &mut out, 0, &Options::new())?;
/// assert_eq!(out, [1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn sample<T: Real>(
    job: &Job,
    out: &mut [T],
    start: u64,
    options: &Options<'_>,
) -> Result<(), Error> {
    let (cpu, threads, stop) = options.settle()?;
    let dim = job.dim();
    if !out.len().is_multiple_of(dim) {
        return Err(Error::invalid("out", format!("a whole number of rows of {dim}"), out.len()));
    }
    let reach = job.reach();
    if reach > T::LARGEST {
        let requirement = format!("of float64 where outputs can reach {reach:.3e}");
        return Err(Error::invalid("out", requirement, T::NAME));
    }
    let rows = (out.len() / dim) as u64;
    let end = start.checked_add(rows).ok_or_else(|| {
        Error::invalid("start", "small enough that no trial is beyond 2^64", start)
    })?;
    // The iterator hands each worker its own part of `out`.
    let mut rest = out;
    let parts = job.blocks(start, end).map(move |rows| {
        let (part, others) =
            std::mem::take(&mut rest).split_at_mut((rows.end - rows.first) as usize * dim);
        rest = others;
        (rows, part)
    });
    with_noise!(job.mechanism.noise(), noise => {
        let same = job.same();
        let work = |(): &mut (), (rows, out): (Rows, &mut [T])| if same {
            dispatch(cpu, FillBlock::<_, _, true> { noise, job, rows, out, stop });
        } else {
            dispatch(cpu, FillBlock::<_, _, false> { noise, job, rows, out, stop });
        };
        each(parts, threads, stop, work, |(), ()| ())
    })
}

/// Counts the trials `start..stop` whose vote is for x', and the NaN entries of their outputs.
///
/// # Errors
///
/// A vote of another dimension; the integer route for a noise that has none; options out of
/// range; [`Error::Interrupted`].
///
/// ```
/// use dpcore::{Job, Laplace, Mechanism, Options, Purpose, Vote, run};
///
/// let job = Job::new(Mechanism::new(Laplace::new(1.0)?), &[0.0])?.seed(7).purpose(Purpose::Count);
/// let vote = Vote::new(&[0.5], &[1])?; // for x' where the output is at least 1/2
/// let counted = run::count(&job, &vote, 0..100_000, &Options::new())?;
/// let share = counted.votes as f64 / 1e5;
/// assert!((share - 0.5 * (-0.5_f64).exp()).abs() < 0.01, "{share}");
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn count(
    job: &Job,
    vote: &Vote<'_>,
    trials: Range<u64>,
    options: &Options<'_>,
) -> Result<Counted, Error> {
    let (cpu, threads, stop) = options.settle()?;
    if vote.dim() != job.dim() {
        let requirement = format!("of the mechanism's dimension {}", job.dim());
        return Err(Error::invalid("vote", requirement, vote.dim()));
    }
    let blocks = job.blocks(trials.start, trials.end);
    let merge = |total: &mut Counted, counted| *total += counted;
    let refused = job.mechanism.noise().no_integer_route();
    let usual = if refused.is_none() { Route::Integer } else { Route::Sampled };
    match options.route.unwrap_or(usual) {
        Route::Sampled => {
            let compare = Compare::new(vote);
            let same = job.same() && compare.uniform();
            with_noise!(job.mechanism.noise(), noise => {
                let compare = &compare;
                let work = |total: &mut Counted, rows| *total += if same {
                    dispatch(cpu, CountOutputs::<_, true> { noise, job, compare, rows, stop })
                } else {
                    dispatch(cpu, CountOutputs::<_, false> { noise, job, compare, rows, stop })
                };
                each(blocks, threads, stop, work, merge)
            })
        }
        Route::Integer => {
            with_monotone!(job.mechanism.noise(), noise => {
                let limits = Limits::of(&noise, job, vote, threads, stop)?;
                let work = |total: &mut Counted, rows| {
                    *total += dispatch(cpu, CountKeys { noise, job, limits: &limits, rows, stop });
                };
                each(blocks, threads, stop, work, merge)
            }, {
                let reason = format!("integer: {}", refused.unwrap_or_default());
                Err(Error::invalid("route", "\"sampled\" or \"auto\"", reason))
            })
        }
    }
}

/// Counts the rows of outputs made elsewhere whose vote is for x', and their NaN entries, on one
/// thread.
///
/// # Errors
///
/// `outputs` is not a whole number of rows; options out of range; [`Error::Interrupted`].
///
/// ```
/// use dpcore::{Counted, Options, Vote, run};
///
/// let vote = Vote::new(&[0.5, 0.5, 0.5], &[1, 1, 1])?;
/// let outputs = [1.0, 0.0, 1.0, 1.0, 0.0, f64::NAN]; // two rows
/// let counted = run::count_outputs(&vote, &outputs, &Options::new())?;
/// assert_eq!(counted, Counted { votes: 1, nan: 1 });
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn count_outputs(
    vote: &Vote<'_>,
    outputs: &[f64],
    options: &Options<'_>,
) -> Result<Counted, Error> {
    let (cpu, _, stop) = options.settle()?;
    let dim = vote.dim();
    if !outputs.len().is_multiple_of(dim) {
        let requirement = format!("a whole number of rows of {dim}");
        return Err(Error::invalid("outputs", requirement, outputs.len()));
    }
    let counted = dispatch(cpu, CountRows { outputs, compare: &Compare::new(vote), dim, stop });
    if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(counted) }
}
