//! From counts in balls to divergences of all orders at once.
//!
//! A cell is a pair of counts (n, j), with the number of rows that have it. With b = alpha - 1 and
//! (x)_b = Gamma(x + 1) / Gamma(x - b + 1), taken as 0 where x - b + 1 <= 0,
//!
//! T = mean (n)_b / (N - 1)_b * [Gamma(M + 1 + b) / Gamma(M + 1)] / [Gamma(j + 1 + b) / Gamma(j + 1)]
//!
//! over the N rows of the numerator's set; M is the size of the denominator's. D = ln T / b, and
//! for alpha = 1 mean [psi(n + 1) - psi(j + 1)] - psi(N) + psi(M + 1).

use std::sync::atomic::AtomicBool;

use super::gamma::{digamma, log_gamma_ratio};
use super::tally::{Counted, counts, gather, is_unseen, key};
use crate::error::Error;
use crate::pool::each;

/// Estimates of one data set at all orders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Divergences, one for each order.
    pub value: Vec<f64>,
    /// (sum w)^2 / sum w^2 over the rows, w the terms of the mean; 0 where all are.
    pub effective: Vec<f64>,
}

/// ln (n)_b; -inf where it is 0.
fn log_falling(n: f64, b: f64) -> f64 {
    if n + 1.0 - b <= 0.0 { f64::NEG_INFINITY } else { -log_gamma_ratio(n + 1.0, -b) }
}

/// Distinct counts of some cells, for logarithms that are computed once each.
struct Union {
    keys: Vec<u64>,
    ns: Vec<f64>,
    js: Vec<f64>,
    /// For each key its places in `ns` and `js`.
    places: Vec<(u32, u32)>,
}

impl Union {
    fn new(sets: &[Counted]) -> Self {
        let mut keys: Vec<u64> =
            sets.iter().flat_map(|set| set.cells.iter().map(|c| c.0)).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut ns, mut js) = (Vec::new(), Vec::new());
        for &key in &keys {
            let (n, j) = counts(key);
            if ns.last() != Some(&n) {
                ns.push(n);
            }
            if js.last() != Some(&j) {
                js.push(j);
            }
        }
        js.sort_unstable();
        js.dedup();
        let mut at = 0;
        let places = keys.iter().map(|&key| {
            let (n, j) = counts(key);
            at += usize::from(ns[at] != n);
            (at as u32, js.partition_point(|&other| other < j) as u32)
        });
        let places = places.collect();
        let real = |counts: Vec<u64>| counts.into_iter().map(|count| count as f64).collect();
        Self { keys, places, ns: real(ns), js: real(js) }
    }

    /// A term for every key: what depends on n less what depends on j.
    fn terms(&self, of_n: impl Fn(f64) -> f64, of_j: impl Fn(f64) -> f64) -> Vec<f64> {
        let ns: Vec<f64> = self.ns.iter().map(|&n| of_n(n)).collect();
        let js: Vec<f64> = self.js.iter().map(|&j| of_j(j)).collect();
        self.places.iter().map(|&(n, j)| ns[n as usize] - js[j as usize]).collect()
    }

    /// Where each cell of a set is among the keys.
    fn find(&self, set: &Counted) -> Vec<u32> {
        let mut at = 0;
        let find = |&(key, _): &(u64, f64)| {
            while self.keys[at] < key {
                at += 1;
            }
            at as u32
        };
        set.cells.iter().map(find).collect()
    }
}

/// Below this a sum of weights that were scaled by the largest of all sets may have lost terms.
const SMALL: f64 = 1e-200;

/// Orders nearer to 1 than this go by T - 1, which loses nothing.
const NEAR: f64 = 0.01;

/// ln 2 in two parts, the first with enough trailing zeros for exact products with exponents.
const LN_2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);

/// e^term as a number near 1 and a power of two, so that scaling all terms rounds none of them:
/// no estimate depends on the sets that are evaluated together.
fn exponential(term: f64) -> (f64, f64) {
    if term == f64::NEG_INFINITY {
        return (0.0, term);
    }
    let exponent = (term * std::f64::consts::LOG2_E).round();
    (((term - exponent * LN_2.0) - exponent * LN_2.1).exp(), exponent)
}

/// 2^exponent for a whole exponent of at most 0; 0 where it is no normal number.
fn power(exponent: f64) -> f64 {
    let biased = (exponent + 1023.0) as i64;
    if biased < 1 { 0.0 } else { f64::from_bits(biased.cast_unsigned() << 52) }
}

/// Weights over 2^(their largest exponent), and that exponent.
fn scaled(split: &[(f64, f64)]) -> (Vec<f64>, f64) {
    let largest = split.iter().fold(f64::NEG_INFINITY, |a, &(_, exponent)| a.max(exponent));
    let weights = split.iter().map(|&(near, exponent)| near * power(exponent - largest));
    (weights.collect(), largest)
}

/// ln(x 2^exponent) for a normal x > 0, the same for every split of the product.
fn log_scaled(x: f64, exponent: f64) -> f64 {
    let own = (x.to_bits() >> 52) as f64 - 1023.0;
    let near = f64::from_bits(x.to_bits() & ((1 << 52) - 1) | 1023 << 52);
    let exponent = own + exponent;
    exponent * LN_2.0 + (near.ln() + exponent * LN_2.1)
}

/// Divergences of every set at every order; the work is shared out by orders.
pub(super) fn evaluate(
    sets: &[Counted],
    alphas: &[f64],
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<Values>, Error> {
    let union = Union::new(sets);
    let found: Vec<Vec<u32>> = sets.iter().map(|set| union.find(set)).collect();
    let work = |columns: &mut Vec<(usize, Vec<(f64, f64)>)>, order: usize| {
        columns.push((order, column(&union, sets, &found, alphas[order])));
    };
    let merge = |all: &mut Vec<_>, mut own: Vec<_>| all.append(&mut own);
    let columns = each(0..alphas.len(), threads, stop, work, merge)?;
    let empty = Values { value: vec![0.0; alphas.len()], effective: vec![0.0; alphas.len()] };
    let mut values = vec![empty; sets.len()];
    for (order, column) in columns {
        for (of, (value, effective)) in values.iter_mut().zip(column) {
            (of.value[order], of.effective[order]) = (value, effective);
        }
    }
    Ok(values)
}

/// (value, effective) of every set at one order.
fn column(union: &Union, sets: &[Counted], found: &[Vec<u32>], alpha: f64) -> Vec<(f64, f64)> {
    let b = alpha - 1.0;
    if b == 0.0 {
        let terms = union.terms(|n| digamma(n + 1.0), |j| digamma(j + 1.0));
        let leibler = |(set, places): (&Counted, &Vec<u32>)| kullback_leibler(set, places, &terms);
        return sets.iter().zip(found).map(leibler).collect();
    }
    let terms = union.terms(|n| log_falling(n, b), |j| log_gamma_ratio(j + 1.0, b));
    let split: Vec<(f64, f64)> = terms.iter().map(|&term| exponential(term)).collect();
    let (weights, exponent) = scaled(&split);
    let renyi = |(set, places): (&Counted, &Vec<u32>)| {
        if set.own == 0 {
            return (f64::NAN, f64::NAN);
        }
        let sums = Sums::new(set, places.iter().map(|&place| weights[place as usize]));
        if b.abs() < NEAR || !(sums.seen > SMALL && sums.squares > SMALL) {
            let own = |&place: &u32| (terms[place as usize], split[place as usize]);
            return alone(set, &places.iter().map(own).collect::<Vec<_>>(), b);
        }
        let log = log_scaled(sums.all / sums.rows, exponent) + constant(set, b);
        (log / b, sums.all * sums.all / sums.squares)
    };
    sets.iter().zip(found).map(renyi).collect()
}

/// What every term of a set has in common.
fn constant(set: &Counted, b: f64) -> f64 {
    log_gamma_ratio(set.other as f64 + 1.0, b) - log_falling(set.own as f64 - 1.0, b)
}

fn kullback_leibler(set: &Counted, places: &[u32], terms: &[f64]) -> (f64, f64) {
    let (mut sum, mut rows) = (0.0, 0.0);
    for (&(_, weight), &place) in set.cells.iter().zip(places) {
        sum += weight * terms[place as usize];
        rows += weight;
    }
    if set.own == 0 {
        return (f64::NAN, f64::NAN);
    }
    (sum / rows - digamma(set.own as f64) + digamma(set.other as f64 + 1.0), rows)
}

#[derive(Default)]
struct Sums {
    rows: f64,
    all: f64,
    squares: f64,
    /// Without atoms that the other set does not have.
    seen: f64,
}

impl Sums {
    fn new(set: &Counted, weights: impl Iterator<Item = f64>) -> Self {
        let mut sums = Self::default();
        for (&(key, rows), weight) in set.cells.iter().zip(weights) {
            sums.rows += rows;
            sums.all += rows * weight;
            sums.squares += rows * (weight * weight);
            sums.seen += if is_unseen(key) { 0.0 } else { rows * weight };
        }
        sums
    }
}

/// One set by its own largest term: exact zeros, infinities and orders near 1.
fn alone(set: &Counted, terms: &[(f64, (f64, f64))], b: f64) -> (f64, f64) {
    let cells = || set.cells.iter().zip(terms);
    let positive = |term: f64| term > f64::NEG_INFINITY;
    let unseen = cells().any(|((key, _), _)| is_unseen(*key));
    let seen = cells().any(|((key, _), (term, _))| !is_unseen(*key) && positive(*term));
    if !terms.iter().any(|&(term, _)| positive(term)) {
        return (if unseen && b > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY }, 0.0);
    }
    let split: Vec<(f64, f64)> = terms.iter().map(|&(_, split)| split).collect();
    let (weights, exponent) = scaled(&split);
    let sums = Sums::new(set, weights.into_iter());
    let effective = sums.all * sums.all / sums.squares;
    if b > 0.0 && !seen {
        return (f64::INFINITY, effective);
    }
    let constant = constant(set, b);
    let log = if terms.iter().all(|(term, _)| (term + constant).abs() < 0.5) {
        let sum = cells().map(|((_, rows), (term, _))| rows * (term + constant).exp_m1());
        (sum.sum::<f64>() / sums.rows).ln_1p()
    } else {
        log_scaled(sums.all / sums.rows, exponent) + constant
    };
    (log / b, effective)
}

/// Checks orders: positive, finite.
pub(super) fn check_alphas(alphas: &[f64]) -> Result<(), Error> {
    match alphas.iter().find(|&&alpha| !(alpha > 0.0 && alpha.is_finite())) {
        Some(&alpha) => Err(Error::invalid("alphas", "positive and finite", alpha)),
        None => Ok(()),
    }
}

/// Divergences from counts given one by one.
///
/// Row i stands for `weight[i]` rows with `n[i]` others of their own set (of `sizes.0` in all) and
/// `j[i]` of the other set (of `sizes.1`) in the ball; `atom[i]` says that they are one atom, which
/// the other set does not have if j = 0. For alpha > 1 the divergence is infinite if no other
/// term is positive; where all are 0 it is minus infinity.
///
/// # Errors
///
/// Different lengths; counts that are negative or not below the sizes (j: not above); weights
/// that are negative or not finite, or sum to 0; sizes of 0 or of 2^31 and more; orders that are
/// not positive.
pub fn ball_values(
    (n, j): (&[i64], &[i64]),
    atom: &[bool],
    weight: &[f64],
    (own, other): (u64, u64),
    alphas: &[f64],
) -> Result<Values, Error> {
    check_alphas(alphas)?;
    for (name, size, least) in [("size_own", own, 1), ("size_other", other, 0)] {
        if !(least..super::MOST_ROWS).contains(&size) {
            return Err(Error::invalid(name, "fewer than 2^31 rows, and at least one", size));
        }
    }
    for (name, length) in [("j", j.len()), ("atom", atom.len()), ("weight", weight.len())] {
        if length != n.len() {
            return Err(Error::invalid(name, format!("as long as n, {}", n.len()), length));
        }
    }
    if let Some(n) = n.iter().find(|&&n| n.cast_unsigned() >= own) {
        return Err(Error::invalid("n", format!("from 0 to {}", own - 1), n));
    }
    if let Some(j) = j.iter().find(|&&j| j.cast_unsigned() > other) {
        return Err(Error::invalid("j", format!("from 0 to {other}"), j));
    }
    if let Some(w) = weight.iter().find(|&&w| !(w >= 0.0 && w.is_finite())) {
        return Err(Error::invalid("weight", "finite and at least 0", w));
    }
    let total: f64 = weight.iter().sum();
    if total <= 0.0 {
        return Err(Error::invalid("weight", "positive in sum", total));
    }
    let rows = n.iter().zip(j).zip(atom).zip(weight).filter(|(_, weight)| **weight > 0.0);
    let mut cells: Vec<(u64, f64)> = rows
        .map(|(((&n, &j), &atom), &weight)| {
            (key(n.cast_unsigned(), j.cast_unsigned(), atom && j == 0), weight)
        })
        .collect();
    gather(&mut cells);
    let sets = [Counted { cells, own, other }];
    let mut values = evaluate(&sets, alphas, 1, &AtomicBool::new(false))?;
    Ok(values.swap_remove(0))
}
