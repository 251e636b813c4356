//! Tables of finite mechanisms: every pair of rows compared over all outputs.
//!
//! Row x of a table holds the probabilities P(y|x) of the outputs y, or their logarithms. Sizes
//! grow with the cube of the number of words, so the work is arranged like a product of matrices:
//! rows of one side are packed 32 side by side, so that lanes are pairs and nothing is
//! added or compared across lanes; a row of the other side is read as it stands, one number for all
//! lanes; running values stay in registers for a stretch of outputs, whose panel stays in the
//! second cache. Both directions of a pair are computed at once.
//!
//! A difference is rounded once, and the greatest of several does not depend on their order; sums
//! are taken in the order of the outputs, each lane by itself, without fused multiply-add. So
//! neither the CPU nor the number of threads nor the cut of a table into calls changes a bit.

use std::f64::consts::LN_2;
use std::marker::PhantomData;

use crate::error::Error;
use crate::math::ln_grid;
use crate::options::Options;
use crate::pool::each;
use crate::simd::kernel::{Kernel, dispatch};
use crate::simd::{Simd, WIDEST};

/// Rows that are packed side by side: a multiple of the lanes of every instruction set.
const PANEL: usize = WIDEST;

/// Outputs of a stretch: a panel of so many takes 64 KiB.
const STRETCH: usize = 256;

/// Rows of the other side that a thread takes at a time.
const GROUP: usize = 8;

/// One number of each row of a panel.
type Line = [f64; PANEL];

/// Writes the largest log ratio of every pair of rows, in both directions.
///
/// With natural logarithms l of probabilities, entry `j * n + i` of `ahead` is the largest
/// `l[i, y] - l'[j, y]` over the outputs y, for row i of the n `rows` and row j of `others`; that
/// of `back` is the largest `l'[j, y] - l[i, y]`. A positive probability against zero is infinite;
/// an output that has probability zero (the logarithm -inf) in both rows says nothing.
///
/// # Errors
///
/// Lengths that do not fit, options that are refused, or a stop.
///
/// ```
/// use dpcore::{Options, tables};
///
/// let rows = [0.75_f64.ln(), 0.25_f64.ln()];
/// let others = [0.5_f64.ln(), 0.5_f64.ln()];
/// let (mut ahead, mut back) = ([0.0], [0.0]);
/// tables::largest_log_ratios([&rows, &others], 2, [&mut ahead, &mut back], &Options::new())?;
/// assert_eq!((ahead[0], back[0]), (rows[0] - others[0], others[1] - rows[1]));
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn largest_log_ratios(
    rows: [&[f64]; 2],
    outputs: usize,
    out: [&mut [f64]; 2],
    options: &Options<'_>,
) -> Result<(), Error> {
    compare::<Ratio, 2>(rows, outputs, &[], out, options)
}

/// Writes the hockey-stick divergence of every pair of rows, in both directions.
///
/// With probabilities p, entry `j * n + i` of `ahead` is the sum over the outputs y of
/// `max(0, p[i, y] - f p'[j, y])`, where f is that entry of `factors`; that of `back` is the sum of
/// `max(0, p'[j, y] - f p[i, y])`. With f = e^epsilon these are the least deltas of
/// (epsilon, delta)-differential privacy for the pair (Barthe and Olmedo, 2013, theorem 1).
///
/// # Errors
///
/// Lengths that do not fit, a factor that is not finite, options that are refused, or a stop.
///
/// ```
/// use dpcore::{Options, tables};
///
/// let (mut ahead, mut back) = ([0.0], [0.0]);
/// let (rows, out) = ([&[0.75, 0.25][..], &[0.5, 0.5]], [&mut ahead[..], &mut back]);
/// tables::hockey_sticks(rows, 2, &[1.0], out, &Options::new())?;
/// assert_eq!((ahead, back), ([0.25], [0.25]));
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn hockey_sticks(
    rows: [&[f64]; 2],
    outputs: usize,
    factors: &[f64],
    out: [&mut [f64]; 2],
    options: &Options<'_>,
) -> Result<(), Error> {
    if factors.len() != out[0].len() {
        return Err(Error::invalid("factors", "one for each pair", factors.len()));
    }
    if let Some(factor) = factors.iter().find(|factor| !factor.is_finite()) {
        return Err(Error::invalid("factors", "finite", factor));
    }
    compare::<Stick, 1>(rows, outputs, factors, out, options)
}

/// Writes natural logarithms of probabilities: -inf for zero, to about an ulp, the same bits
/// everywhere.
///
/// # Errors
///
/// Lengths that do not fit, a number that is not from 0 to 2, options that are refused, or a stop.
pub fn logarithms(values: &[f64], out: &mut [f64], options: &Options<'_>) -> Result<(), Error> {
    const PART: usize = 1 << 14;
    let (cpu, threads, stop) = options.settle()?;
    if out.len() != values.len() {
        return Err(Error::invalid("out", format!("{} long", values.len()), out.len()));
    }
    if let Some(value) = values.iter().find(|value| !(0.0..=2.0).contains(*value)) {
        return Err(Error::invalid("values", "from 0 to 2", value));
    }
    let parts = values.chunks(PART).zip(out.chunks_mut(PART));
    let work = |(): &mut (), (values, out)| dispatch(cpu, Logarithms { values, out });
    each(parts, threads, stop, work, |(), ()| ())
}

struct Logarithms<'a> {
    values: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Logarithms<'_> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        const TWO_52: f64 = (1_u64 << 52) as f64;
        const TWO_252: f64 = TWO_52 * (1_u128 << 100) as f64 * (1_u128 << 100) as f64;
        for (values, out) in self.values.chunks(S::WIDTH).zip(self.out.chunks_mut(S::WIDTH)) {
            let mut lanes = [1.0; WIDEST];
            lanes[..values.len()].copy_from_slice(values);
            // SAFETY: both have room for the widest vector.
            unsafe {
                let value = simd.loadf(lanes.as_ptr());
                // Small numbers, subnormal ones too, are taken 2^200 times, exactly.
                let small = simd.gef(simd.splatf(1e-280), value);
                let (large, usual) = (simd.splatf(TWO_252), simd.splatf(TWO_52));
                let grid = simd.mulf(value, simd.selectf(small, large, usual));
                let less = simd.selectf(small, simd.splatf(200.0 * LN_2), simd.splatf(0.0));
                let log = simd.subf(ln_grid(simd, grid), less);
                let zero = simd.gef(simd.splatf(0.0), value);
                let log = simd.selectf(zero, simd.splatf(-f64::INFINITY), log);
                simd.storef(lanes.as_mut_ptr(), log);
            }
            out.copy_from_slice(&lanes[..out.len()]);
        }
    }
}

/// What is found for a pair of rows, output by output.
trait Comparison: Send + Sync {
    /// The two running values before the first output.
    const START: [f64; 2];
    /// The running values with one more output: `a` of the packed row, `b` of the other.
    fn step<S: Simd>(simd: S, a: S::F, b: S::F, factor: S::F, found: [S::F; 2]) -> [S::F; 2];
    /// The results, from the running values after the last output.
    fn finish(found: [f64; 2]) -> [f64; 2];
}

struct Ratio;

impl Comparison for Ratio {
    const START: [f64; 2] = [-f64::INFINITY, f64::INFINITY];

    /// Where both are -inf the difference is NaN, and the running value, the second, stays.
    #[inline(always)]
    fn step<S: Simd>(simd: S, a: S::F, b: S::F, _: S::F, [most, least]: [S::F; 2]) -> [S::F; 2] {
        let difference = simd.subf(a, b);
        [simd.maxf(difference, most), simd.minf(difference, least)]
    }

    /// Which zero is the greatest depends on the order: there is one, +0.
    fn finish([most, least]: [f64; 2]) -> [f64; 2] {
        [most + 0.0, -least + 0.0]
    }
}

struct Stick;

impl Comparison for Stick {
    const START: [f64; 2] = [0.0; 2];

    #[inline(always)]
    fn step<S: Simd>(simd: S, a: S::F, b: S::F, factor: S::F, found: [S::F; 2]) -> [S::F; 2] {
        let zero = simd.splatf(0.0);
        let ahead = simd.maxf(simd.subf(a, simd.mulf(factor, b)), zero);
        let back = simd.maxf(simd.subf(b, simd.mulf(factor, a)), zero);
        [simd.addf(found[0], ahead), simd.addf(found[1], back)]
    }

    fn finish(found: [f64; 2]) -> [f64; 2] {
        found
    }
}

/// Compares all pairs of rows of two sides, `R` rows of the second at a time.
fn compare<C: Comparison, const R: usize>(
    [rows, others]: [&[f64]; 2],
    outputs: usize,
    factors: &[f64],
    [ahead, back]: [&mut [f64]; 2],
    options: &Options<'_>,
) -> Result<(), Error> {
    let (cpu, threads, stop) = options.settle()?;
    let size = check_sizes([rows, others], outputs, [ahead.len(), back.len()])?;
    if size == 0 {
        return Ok(());
    }
    let mut packed = vec![[0.0; PANEL]; size.div_ceil(PANEL) * outputs];
    let panels = packed.chunks_mut(outputs).zip(rows.chunks(PANEL * outputs));
    each(panels, threads, stop, |(): &mut (), (panel, rows)| pack(panel, rows), |(), ()| ())?;
    let packed = &packed[..];
    let chunk = GROUP * size;
    let groups = others.chunks(GROUP * outputs).zip(ahead.chunks_mut(chunk)).enumerate();
    let groups = groups.zip(back.chunks_mut(chunk));
    let work = |(): &mut (), ((place, (others, ahead)), back)| {
        let factors = factors.chunks(chunk).nth(place).unwrap_or(&[]);
        let (out, comparison) = ([ahead, back], PhantomData::<C>);
        dispatch(cpu, Group::<C, R> { packed, outputs, size, others, factors, out, comparison });
    };
    each(groups, threads, stop, work, |(), ()| ())
}

/// The number of packed rows.
fn check_sizes(sides: [&[f64]; 2], outputs: usize, room: [usize; 2]) -> Result<usize, Error> {
    for (name, side) in ["rows", "others"].into_iter().zip(sides) {
        if outputs == 0 || side.len() % outputs != 0 {
            return Err(Error::invalid(name, format!("whole rows of {outputs}"), side.len()));
        }
    }
    let [size, others] = sides.map(|side| side.len() / outputs);
    if room != [size * others; 2] {
        return Err(Error::invalid("ahead and back", format!("{} long", size * others), room));
    }
    Ok(size)
}

/// Turns up to [`PANEL`] rows into lines, a few outputs at a time, so that these stay in the cache.
fn pack(panel: &mut [Line], rows: &[f64]) {
    const FEW: usize = 16;
    let outputs = panel.len();
    for (part, lines) in panel.chunks_mut(FEW).enumerate() {
        for (lane, row) in rows.chunks(outputs).enumerate() {
            for (line, &value) in lines.iter_mut().zip(&row[part * FEW..]) {
                line[lane] = value;
            }
        }
    }
}

/// The running values of a panel's pairs with one row.
type Found = [Line; 2];

/// All packed rows against a few of the others, `R` of these at a time.
struct Group<'a, C, const R: usize> {
    packed: &'a [Line],
    outputs: usize,
    size: usize,
    others: &'a [f64],
    factors: &'a [f64],
    out: [&'a mut [f64]; 2],
    comparison: PhantomData<C>,
}

impl<C, const R: usize> Group<'_, C, R> {
    /// The factors of row j's pairs with a panel; 1 where there are none.
    #[inline(always)]
    fn factor(&self, panel: usize, j: usize) -> Line {
        let mut line = [1.0; PANEL];
        if let Some(row) = self.factors.chunks(self.size).nth(j) {
            for (lane, &factor) in line.iter_mut().zip(&row[panel * PANEL..]) {
                *lane = factor;
            }
        }
        line
    }
}

impl<C: Comparison, const R: usize> Kernel for Group<'_, C, R> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let group = self;
        let (panels, rows) = (group.size.div_ceil(PANEL), group.others.len() / group.outputs);
        let mut found: Vec<Found> = vec![C::START.map(|value| [value; PANEL]); panels * rows];
        for start in (0..group.outputs).step_by(STRETCH) {
            let end = group.outputs.min(start + STRETCH);
            for (panel, found) in found.chunks_mut(rows).enumerate() {
                let lines = &group.packed[panel * group.outputs..][start..end];
                let other = |j: usize| &group.others[j * group.outputs..][start..end];
                let (sets, rest) = found.as_chunks_mut::<R>();
                let first = sets.len() * R;
                for (set, found) in sets.iter_mut().enumerate() {
                    let others = std::array::from_fn(|r| other(set * R + r));
                    let factors = std::array::from_fn(|r| group.factor(panel, set * R + r));
                    go_on::<S, C, R>(simd, lines, others, &factors, found);
                }
                for (r, found) in rest.iter_mut().enumerate() {
                    let factors = [group.factor(panel, first + r)];
                    let found = std::array::from_mut(found);
                    go_on::<S, C, 1>(simd, lines, [other(first + r)], &factors, found);
                }
            }
        }
        let [ahead, back] = group.out;
        for (j, (ahead, back)) in
            ahead.chunks_mut(group.size).zip(back.chunks_mut(group.size)).enumerate()
        {
            for (i, (ahead, back)) in ahead.iter_mut().zip(back).enumerate() {
                let [most, least] = found[i / PANEL * rows + j].map(|line| line[i % PANEL]);
                [*ahead, *back] = C::finish([most, least]);
            }
        }
    }
}

/// Goes on over a stretch of outputs: a panel's lines against `R` rows.
#[inline(always)]
fn go_on<S: Simd, C: Comparison, const R: usize>(
    simd: S,
    lines: &[Line],
    others: [&[f64]; R],
    factors: &[Line; R],
    found: &mut [Found; R],
) {
    let others = others.map(|other| &other[..lines.len()]);
    for lane in (0..PANEL).step_by(S::WIDTH) {
        // SAFETY: PANEL is a multiple of WIDTH, so that many numbers follow lane in each line.
        unsafe {
            let factors = factors.each_ref().map(|line| simd.loadf(line.as_ptr().add(lane)));
            let load =
                |found: &Found| found.each_ref().map(|line| simd.loadf(line.as_ptr().add(lane)));
            let mut running = found.each_ref().map(load);
            for (y, line) in lines.iter().enumerate() {
                let a = simd.loadf(line.as_ptr().add(lane));
                for r in 0..R {
                    let b = simd.splatf(others[r][y]);
                    running[r] = C::step(simd, a, b, factors[r], running[r]);
                }
            }
            for (found, running) in found.iter_mut().zip(running) {
                for (line, running) in found.iter_mut().zip(running) {
                    simd.storef(line.as_mut_ptr().add(lane), running);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;
    use crate::simd::cpu::Cpu;

    type Both = Result<[Vec<f64>; 2], Error>;

    fn room(rows: [&[f64]; 2], outputs: usize) -> [Vec<f64>; 2] {
        let pairs = rows[0].len() / outputs * (rows[1].len() / outputs);
        [vec![f64::NAN; pairs], vec![f64::NAN; pairs]]
    }

    fn ratios(rows: [&[f64]; 2], outputs: usize, options: &Options<'_>) -> Both {
        let mut out = room(rows, outputs);
        let [ahead, back] = &mut out;
        largest_log_ratios(rows, outputs, [ahead, back], options)?;
        Ok(out)
    }

    fn sticks(rows: [&[f64]; 2], outputs: usize, factor: f64, options: &Options<'_>) -> Both {
        let mut out = room(rows, outputs);
        let [ahead, back] = &mut out;
        let factors = vec![factor; ahead.len()];
        hockey_sticks(rows, outputs, &factors, [ahead, back], options)?;
        Ok(out)
    }

    /// Both results one pair and one output at a time.
    fn naive(
        [rows, others]: [&[f64]; 2],
        outputs: usize,
        of: impl Fn(&[f64], &[f64]) -> f64,
    ) -> [Vec<f64>; 2] {
        let all = || others.chunks(outputs).flat_map(|b| rows.chunks(outputs).map(move |a| (a, b)));
        [all().map(|(a, b)| of(a, b)).collect(), all().map(|(a, b)| of(b, a)).collect()]
    }

    fn ratio(a: &[f64], b: &[f64]) -> f64 {
        let differences = a.iter().zip(b).map(|(a, b)| a - b).filter(|value| !value.is_nan());
        differences.fold(-f64::INFINITY, f64::max) + 0.0
    }

    fn bits(found: &[Vec<f64>; 2]) -> Vec<u64> {
        found.iter().flatten().map(|value| value.to_bits()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn every_path_and_any_threads_agree_with_one_pair_at_a_time(
            (n, m, outputs) in (0usize..70, 0usize..20, 1usize..600),
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 40) as f64 / f64::from(1 << 24)
            };
            // One in four outputs has probability zero, and equal numbers are frequent.
            let mut side = |rows: usize| -> Vec<f64> {
                (0..rows * outputs).map(|_| ((draw() - 0.25) * 16.0).round().max(0.0)).collect()
            };
            let (rows, others) = (side(n), side(m));
            let logs = [&rows, &others].map(|side| side.iter().map(|p| p.ln()).collect::<Vec<_>>());
            let logs = [&logs[0][..], &logs[1]];
            let expected = bits(&naive(logs, outputs, ratio));
            let stick = |a: &[f64], b: &[f64]| {
                a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + (a - 1.25 * b).max(0.0))
            };
            let sums = bits(&naive([&rows, &others], outputs, stick));
            for cpu in Cpu::present() {
                for threads in [1, 3] {
                    let options = Options::new().cpu(cpu).threads(threads);
                    prop_assert_eq!(&bits(&ratios(logs, outputs, &options).unwrap()), &expected);
                    let found = sticks([&rows, &others], outputs, 1.25, &options).unwrap();
                    prop_assert_eq!(&bits(&found), &sums);
                }
            }
        }
    }

    #[test]
    fn zero_against_zero_says_nothing_and_a_ratio_of_one_is_plus_zero() {
        let zero = -f64::INFINITY;
        for cpu in Cpu::present() {
            let options = Options::new().cpu(cpu);
            for (a, b, ahead, back) in [
                ([zero, -1.0], [zero, -2.0], 1.0_f64, -1.0_f64),
                ([zero, -1.0], [-3.0, -1.0], 0.0, f64::INFINITY),
                ([-0.0, zero], [0.0, zero], 0.0, 0.0),
                ([zero, zero], [zero, zero], zero, zero),
            ] {
                let [found, turned] = ratios([&a, &b], 2, &options).unwrap();
                assert_eq!(found[0].to_bits(), ahead.to_bits(), "{a:?} {b:?}");
                assert_eq!(turned[0].to_bits(), back.to_bits(), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn logarithms_are_right_and_the_same_bits_everywhere() {
        let mut values = vec![0.0, 5e-324, f64::MIN_POSITIVE, 0.5, 1.0, 1.0 + 1e-9, 1e-300];
        values.extend((1..5_000).map(|i| (f64::from(i) * 0.618_034).fract().powi(i % 40)));
        let mut expected = Vec::new();
        for cpu in Cpu::present() {
            let mut logs = vec![f64::NAN; values.len()];
            logarithms(&values, &mut logs, &Options::new().cpu(cpu).threads(2)).unwrap();
            assert_eq!(logs[0], -f64::INFINITY);
            for (value, log) in values.iter().zip(&logs).skip(1) {
                assert!((log - value.ln()).abs() <= 4e-16 * log.abs().max(1e-3), "{value} {log}");
            }
            let bits: Vec<_> = logs.iter().map(|log| log.to_bits()).collect();
            expected = if expected.is_empty() { bits.clone() } else { expected };
            assert_eq!(bits, expected);
        }
        let error = logarithms(&[-0.5], &mut [0.0], &Options::new()).unwrap_err();
        assert_eq!(error.to_string(), "values must be from 0 to 2, got -0.5");
    }

    #[test]
    fn wrong_lengths_are_refused_and_a_stop_is_heard() {
        let (rows, options) = ([0.5; 4], Options::new());
        let mut out = [0.0; 4];
        let (ahead, back) = out.split_at_mut(2);
        let error = largest_log_ratios([&rows, &rows], 2, [ahead, back], &options).unwrap_err();
        assert_eq!(error.to_string(), "ahead and back must be 4 long, got [2, 2]");
        let error = ratios([&rows, &rows[..3]], 2, &options).unwrap_err();
        assert_eq!(error.to_string(), "others must be whole rows of 2, got 3");
        let error = sticks([&rows, &rows], 2, f64::INFINITY, &options).unwrap_err();
        assert_eq!(error.to_string(), "factors must be finite, got inf");
        let stop = AtomicBool::new(true);
        let stopped = ratios([&rows, &rows], 2, &options.stop(&stop));
        assert_eq!(stopped, Err(Error::Interrupted));
    }
}
