//! Bytes at the edge of their guard.

use super::super::distance::squared;
use super::super::frame::{Frame, up};
use super::super::search::{Search, Sets};
use super::codes::{Codes, EncodePoints, EncodeQueries};
use super::*;
use crate::simd::kernel::dispatch;

/// Rows as queries and as points of a frame around zero with the scale 1.
fn encoded(rows: &[f64], dim: usize, cpu: Cpu) -> (Coded, Codes) {
    let sets = Sets::new(rows, &[], dim).unwrap();
    let all: Vec<i64> = (0..sets.len() as i64).collect();
    let search = &Search::new(sets, &all, &all).unwrap();
    let (frame, mut out) = (&Frame::new(vec![0.0; dim], 1.0), Coded::default());
    let queries: Vec<usize> = (0..all.len()).collect();
    let places: Vec<u32> = (0..all.len() as u32).collect();
    dispatch(cpu, EncodeQueries { frame, search, queries: &queries, out: &mut out });
    (out, dispatch(cpu, EncodePoints { frame, search, places: &places }))
}

struct All(Vec<(usize, usize, i32)>);

impl Sink for All {
    fn hit(&mut self, i: usize, j: usize, product: i32, _: &mut [f32]) {
        self.0.push((i, j, product));
    }
}

/// Hits of all queries with one point, with a bound for each query.
fn hits(
    (coded, codes): &(Coded, Codes),
    dim: usize,
    j: usize,
    bound: impl Fn(usize) -> f32,
    cpu: Cpu,
) -> Vec<(usize, usize, i32)> {
    let (stride, mut sink) = (stride(dim), All(Vec::new()));
    let mut bounds = vec![f32::NAN; coded.sizes.len()];
    bounds[..coded.norms.len()].iter_mut().zip(0..).for_each(|(own, i)| *own = bound(i));
    let (points, about) = (&codes.rows[j * stride..(j + 1) * stride], &codes.about[j..=j]);
    let bounds = &mut bounds[..];
    Products { dim, queries: coded, points, about, bounds, sink: &mut sink }.run(cpu);
    sink.0
}

/// All pairs: products are exact, bounds hold, and v is a hit at the distance itself.
fn check(rows: &[f64], dim: usize, cpu: Cpu) {
    let both = encoded(rows, dim, cpu);
    let (coded, codes) = (&both.0, &both.1);
    let (row, stride) = (|i: usize| &rows[i * dim..(i + 1) * dim], stride(dim));
    let code = |i: usize| codes.rows[i * stride..(i + 1) * stride].iter();
    for j in 0..coded.norms.len() {
        let distance = |i: usize| squared(row(i), row(j));
        let found = hits(&both, dim, j, |i| up(distance(i) - coded.less[i]), cpu);
        assert_eq!(found.len(), coded.norms.len(), "{cpu:?} {j}");
        for (i, _, product) in found {
            let exact = code(i).zip(code(j)).map(|(&a, &b)| i64::from(a) * i64::from(b));
            assert_eq!(i64::from(product), exact.sum::<i64>());
            let (low, high) = coded.bounds(i, &codes.about[j], product);
            let value = distance(i);
            assert!(low <= value && value <= high, "{cpu:?} {value} not in {low}..{high}");
        }
    }
}

#[test]
fn residuals_in_one_direction_are_within_the_guard_and_close_to_it() {
    // A row that is its code, along the residuals of another one: Cauchy and Schwarz are equal.
    let dim = 400;
    for sign in [1.0, -1.0] {
        let mut rows = vec![sign; 2 * dim];
        rows[dim..].iter_mut().zip(0..).for_each(|(value, i)| {
            *value = if i == 0 { 127.0 } else { f64::from(i % 5) - 2.0 + 0.499 };
        });
        for cpu in Cpu::present() {
            check(&rows, dim, cpu);
            let both = encoded(&rows, dim, cpu);
            let value = squared(&rows[..dim], &rows[dim..]);
            for (i, j) in [(0, 1), (1, 0)] {
                let found = hits(&both, dim, j, |_| f32::INFINITY, cpu);
                let (low, high) = both.0.bounds(i, &both.1.about[j], found[i].2);
                let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
                assert!((value - middle).abs() > 0.95 * half, "{value} {middle} {half}");
                assert!((value > middle) == (sign < 0.0));
            }
        }
    }
}

#[test]
fn rows_that_are_their_codes_need_the_guard_of_the_roundings() {
    // No residual: what v loses by rounding is all that there is.
    let (dim, mut state) = (150, 1_u32);
    let mut rows = Vec::new();
    for i in 0..60 * dim {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = f64::from(state >> 24) - 128.0;
        let value = if i % dim == 0 { 127.0 } else { value.max(-127.0) };
        rows.push(value * f64::from(1 + 2 * (i / dim) as u32));
    }
    for cpu in Cpu::present() {
        check(&rows, dim, cpu);
    }
}

#[test]
fn a_product_at_the_bound_is_a_hit() {
    for cpu in Cpu::present() {
        let both = encoded(&[127.0, 3.0, -5.0, 20.0], 4, cpu);
        let (coded, point) = (&both.0, &both.1.about[0]);
        let product = hits(&both, 4, 0, |_| f32::INFINITY, cpu)[0].2;
        let (size, error, step) = (coded.sizes[0], coded.errors[0], coded.steps[0]);
        let last = point.step * product as f32;
        let value = if fast(cpu) {
            let value = (-error).mul_add(point.length, (-size).mul_add(point.error, point.low));
            (-step).mul_add(last, value)
        } else {
            point.low - size * point.error - error * point.length - step * last
        };
        assert_eq!(hits(&both, 4, 0, |_| value, cpu).len(), 1);
        assert_eq!(hits(&both, 4, 0, |_| value.next_down(), cpu).len(), 0);
    }
}

#[test]
fn any_magnitude_and_rows_that_vanish() {
    for (dim, power) in [(1, 0), (7, 30), (33, -20), (65, -59), (70, -61), (130, -130)] {
        let mut rows: Vec<f64> = (0..50 * dim).map(|i| (i as f64 * 0.7).sin()).collect();
        for value in &mut rows {
            *value *= 2.0_f64.powi(power);
        }
        rows[..dim].fill(0.0);
        rows[2 * dim..3 * dim].iter_mut().for_each(|value| *value *= 1e-9);
        rows.copy_within(4 * dim..5 * dim, 5 * dim);
        for cpu in Cpu::present() {
            check(&rows, dim, cpu);
        }
    }
}

#[test]
fn the_largest_products_do_not_overflow() {
    let dim = 1 << 16;
    let mut rows = vec![3.0; 3 * dim];
    rows[dim..2 * dim].fill(-3.0);
    rows[2 * dim..].iter_mut().step_by(2).for_each(|value| *value = -3.0);
    for cpu in Cpu::present() {
        check(&rows, dim, cpu);
    }
}

#[test]
fn rows_that_fit_no_frame_are_never_hits() {
    for bad in [f64::NAN, f64::INFINITY, 1e300, 1e13] {
        let rows = [bad, 1.0, 2.0, 3.0, 1.0, 0.5, 0.1, 2.0];
        for cpu in Cpu::present() {
            let both = encoded(&rows, 4, cpu);
            assert!(!Frame::fits(both.0.norms[0]) && Frame::fits(both.0.norms[1]));
            let bound = |i: usize| if i == 0 { f32::NAN } else { f32::INFINITY };
            let found = hits(&both, 4, 1, bound, cpu);
            assert!(found.len() == 1 && found[0].0 == 1);
        }
    }
}

#[test]
fn the_guard_is_what_the_roundings_need() {
    // No residual, so that the bounds are the guard's alone: 49 roundings, one for the f64.
    let (dim, unit) = (3, 2.0_f64.powi(-24));
    let rows = [127.0, 3.0, -5.0, -254.0, 20.0, 6.0];
    for cpu in Cpu::present() {
        let both = encoded(&rows, dim, cpu);
        let (coded, codes) = (&both.0, &both.1);
        for (i, j) in [(0, 0), (0, 1), (1, 0)] {
            let product = hits(&both, dim, j, |_| f32::INFINITY, cpu)[i].2;
            let (low, high) = coded.bounds(i, &codes.about[j], product);
            let value = squared(&rows[i * dim..][..dim], &rows[j * dim..][..dim]);
            let norms = (coded.norms[i] + coded.norms[j]) * unit;
            for room in [value - low, high - value] {
                assert!((50.0..67.0).contains(&(room / norms)), "{cpu:?} {}", room / norms);
            }
        }
    }
}

#[test]
fn rows_whose_products_vanish_are_within_the_guard() {
    // A machine may flush all products to zero: v is then the point's `low`.
    for power in [-70, -80, -140] {
        let row = [2.0_f64.powi(power); 64];
        let (coded, codes) = encoded(&row, 64, Cpu::Baseline);
        assert!(f64::from(codes.about[0].low) <= -coded.less[0]);
    }
}

#[test]
fn lengths_have_room_for_roundings_and_no_more() {
    // |Y| = 5 is an f32; the codes are 95 and 127 steps of 4/127.
    for cpu in Cpu::present() {
        let (coded, codes) = encoded(&[3.0, 4.0], 2, cpu);
        let near = |value: f32, exact: f64| {
            exact < f64::from(value) && f64::from(value) < exact * (1.0 + 2.0_f64.powi(-21))
        };
        let step = f64::from((4.0 / 127.0) as f32);
        let (x, y) = (3.0 - 95.0 * step, 4.0 - 127.0 * step);
        assert!(near(codes.about[0].length, 5.0));
        assert!(near(codes.about[0].error, x.hypot(y)));
        assert!(near(coded.errors[0], 2.0 * x.hypot(y)));
        assert!(near(coded.sizes[0], 2.0 * step * 95.0_f64.hypot(127.0)));
        // Where every number is an f32 the room is all that there is above it.
        let (coded, codes) = encoded(&[127.0; 4], 4, cpu);
        assert!(coded.sizes[0] == 508.0_f32.next_up() && codes.about[0].length > 254.0);
        // And without a residual what placing the row has lost.
        assert!(codes.about[0].error >= 254.0 * 2.0_f32.powi(-40));
    }
}
