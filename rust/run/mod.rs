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
mod output;
mod sampled;
mod sweep;

use std::sync::atomic::AtomicBool;

pub use job::Job;
pub use output::Real;

use crate::error::Error;
use crate::events::{Counted, Vote};
use crate::mechanisms::{with_monotone, with_noise};
use crate::pool::each;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::dispatch;
use integer::{CountKeys, Limits};
use job::Rows;
use output::FillBlock;
use sampled::{Compare, CountOutputs, CountRows};

/// How votes are counted; the counts are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Outputs are computed and compared.
    Sampled,
    /// The random integers themselves are compared.
    Integer,
}

/// Fills `out` with the outputs of the trials from `start` on, row by row.
///
/// # Errors
///
/// `out` is not a whole number of rows, too many trials; [`Error::Interrupted`].
pub fn sample<T: Real + Sync>(
    job: &Job,
    out: &mut [T],
    start: u64,
    (cpu, threads): (Cpu, usize),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let dim = job.dim();
    if !out.len().is_multiple_of(dim) {
        return Err(Error::invalid("out", format!("a whole number of rows of {dim}"), out.len()));
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
    with_noise!(job.mechanism.noise, noise => {
        let same = job.same();
        let work = |(): &mut (), (rows, out): (Rows, &mut [T])| if same {
            dispatch(cpu, FillBlock::<_, _, true> { noise, job, rows, out });
        } else {
            dispatch(cpu, FillBlock::<_, _, false> { noise, job, rows, out });
        };
        each(parts, threads, stop, work, |(), ()| ())
    })
}

/// Counts the trials `start..stop` whose vote is for x', and the NaN entries of their outputs.
///
/// # Errors
///
/// A vote of another dimension; the integer route for a noise that has none;
/// [`Error::Interrupted`].
pub fn count(
    job: &Job,
    vote: &Vote<'_>,
    (start, stop): (u64, u64),
    route: Route,
    (cpu, threads): (Cpu, usize),
    interrupt: &AtomicBool,
) -> Result<Counted, Error> {
    if vote.dim() != job.dim() {
        let requirement = format!("of the mechanism's dimension {}", job.dim());
        return Err(Error::invalid("vote", requirement, vote.dim()));
    }
    let blocks = job.blocks(start, stop);
    let merge = |total: &mut Counted, counted| *total += counted;
    match route {
        Route::Sampled => {
            let compare = Compare::new(vote);
            let same = job.same() && compare.uniform();
            with_noise!(job.mechanism.noise, noise => {
                let compare = &compare;
                let work = |total: &mut Counted, rows| *total += if same {
                    dispatch(cpu, CountOutputs::<_, true> { noise, job, compare, rows })
                } else {
                    dispatch(cpu, CountOutputs::<_, false> { noise, job, compare, rows })
                };
                each(blocks, threads, interrupt, work, merge)
            })
        }
        Route::Integer => {
            let refused = |reason| Error::invalid("route", "\"sampled\" or \"auto\"", reason);
            with_monotone!(job.mechanism.noise, noise => {
                let limits = Limits::new(&noise, job, vote);
                let work = |total: &mut Counted, rows| {
                    *total += dispatch(cpu, CountKeys { noise, job, limits: &limits, rows });
                };
                each(blocks, threads, interrupt, work, merge)
            }, {
                let reason = job.mechanism.noise.no_integer_route().unwrap_or_default();
                Err(refused(format!("integer: {reason}")))
            })
        }
    }
}

/// Counts the rows of outputs made elsewhere whose vote is for x', and their NaN entries.
///
/// # Errors
///
/// `outputs` is not a whole number of rows.
pub fn count_outputs(vote: &Vote<'_>, outputs: &[f64], cpu: Cpu) -> Result<Counted, Error> {
    let dim = vote.dim();
    if !outputs.len().is_multiple_of(dim) {
        let requirement = format!("a whole number of rows of {dim}");
        return Err(Error::invalid("outputs", requirement, outputs.len()));
    }
    Ok(dispatch(cpu, CountRows { outputs, compare: &Compare::new(vote), dim }))
}
