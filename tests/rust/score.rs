//! Additive scores against a loop that follows their definition, to the last bit.

use std::collections::HashMap;

use dpcore::score::{
    Layout, Patterns, Transform, Weights, count_additive, pattern_keys, score_additive,
};
use proptest::prelude::*;

/// A model that owns its parts.
#[derive(Clone, Debug)]
struct Model {
    transform: Transform,
    edges: Vec<Vec<f64>>,
    keys: Vec<u64>,
    patterns: Vec<u64>,
    groups: Vec<u32>,
    pattern_weights: Vec<f64>,
    weights: Vec<f64>,
}

const HASH_BITS: u32 = 3;

fn hash(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)) as usize
}

impl Model {
    fn flat(&self) -> (Vec<f64>, Vec<i64>) {
        let mut offsets = vec![0];
        for edges in &self.edges {
            offsets.push(offsets[offsets.len() - 1] + edges.len() as i64);
        }
        (self.edges.concat(), offsets)
    }

    fn total(&self) -> usize {
        self.edges.iter().map(|edges| edges.len() + 2).sum()
    }

    /// The table's parts in the order of the hashes: keys, first places, groups, weights.
    fn table(&self) -> (Vec<u64>, Vec<u32>, Vec<u32>, Vec<f64>) {
        let mut order: Vec<usize> = (0..self.patterns.len()).collect();
        order.sort_by_key(|&i| hash(self.patterns[i]));
        let below = |end: usize| order.iter().filter(|&&i| hash(self.patterns[i]) < end).count();
        (
            order.iter().map(|&i| self.patterns[i]).collect(),
            (0..=1 << HASH_BITS).map(|end| below(end) as u32).collect(),
            order.iter().map(|&i| self.groups[i]).collect(),
            order.iter().map(|&i| self.pattern_weights[i]).collect(),
        )
    }

    /// The columns of a row.
    fn columns(&self, row: &[f64]) -> Vec<f64> {
        let mut columns = row.to_vec();
        match self.transform {
            Transform::Values => {}
            Transform::Differences => {
                for i in 1..row.len() {
                    columns[i] = row[i] - row[i - 1];
                }
            }
            Transform::Sorted => {
                columns.sort_by(|a, b| {
                    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                });
            }
            other => unreachable!("{other:?} is new"),
        }
        columns
    }

    /// Places of a row's bins among those of all columns.
    fn places(&self, row: &[f64]) -> Vec<usize> {
        let mut start = 0;
        let mut places = Vec::new();
        for (value, edges) in self.columns(row).iter().zip(&self.edges) {
            let below = edges.iter().filter(|&edge| edge <= value).count();
            places.push(start + if value.is_nan() { edges.len() + 1 } else { below });
            start += edges.len() + 2;
        }
        places
    }

    fn key(&self, row: &[f64]) -> u64 {
        let key = |place: usize| self.keys.get(place).copied().unwrap_or(0);
        self.places(row).into_iter().fold(0, |sum, place| sum.wrapping_add(key(place)))
    }

    /// Place of a row's pattern among the model's.
    fn pattern(&self, row: &[f64]) -> Option<usize> {
        let key = self.key(row);
        self.patterns.iter().position(|&pattern| pattern == key)
    }

    fn score(&self, row: &[f64]) -> f64 {
        let pattern = self.pattern(row);
        let base = pattern.map_or(0, |p| self.groups[p] as usize * self.total());
        let start = pattern.map_or(0.0, |p| self.pattern_weights[p]);
        let weight = |place: usize| self.weights.get(base + place).copied();
        self.places(row).into_iter().fold(start, |sum, place| match weight(place) {
            Some(weight) => sum + weight,
            None => sum,
        })
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -3.0..3.0_f64,
        6 => (-3_i32..4).prop_map(f64::from),
        1 => prop_oneof![Just(f64::NAN), Just(-f64::NAN), Just(-0.0)],
        1 => prop_oneof![Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ]
}

fn edges() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(value().prop_filter("a number", |v| !v.is_nan()), 0..24).prop_map(
        |mut edges| {
            edges.sort_by(f64::total_cmp);
            edges
        },
    )
}

fn model() -> impl Strategy<Value = Model> {
    let transform =
        prop_oneof![Just(Transform::Values), Just(Transform::Differences), Just(Transform::Sorted)];
    let columns = prop::collection::vec(edges(), 1..6);
    (transform, columns, any::<bool>(), any::<u64>(), 0_u32..4, 0_usize..40).prop_map(
        |(transform, edges, keyed, seed, groups, patterns)| {
            let total: usize = edges.iter().map(|edges| edges.len() + 2).sum();
            let mut state = seed;
            let mut next = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                state >> 33
            };
            let keys = if keyed { (0..total).map(|_| next() % 3).collect() } else { vec![] };
            let patterns: Vec<u64> = (0..patterns as u64).step_by(2).collect();
            let mut weight = || next() as f64 / f64::from(1 << 28) - 4.0;
            let pattern_weights = patterns.iter().map(|_| weight()).collect();
            let weights = (0..total * groups as usize).map(|_| weight()).collect();
            let groups = patterns.iter().map(|key| (*key as u32 / 2) % groups.max(1)).collect();
            Model { transform, edges, keys, patterns, groups, pattern_weights, weights }
        },
    )
}

fn rows(dim: usize, numbers: &[f64], repeats: usize) -> Vec<f64> {
    let whole = &numbers[..numbers.len() / dim * dim];
    whole.repeat(repeats)
}

proptest! {
    #[test]
    fn scores_counts_and_patterns_are_what_their_definitions_say(
        model in model(),
        numbers in prop::collection::vec(value(), 0..300),
        repeats in 1_usize..4,
    ) {
        let dim = model.edges.len();
        let outputs = rows(dim, &numbers, repeats);
        let size = outputs.len() / dim;
        let (flat, offsets) = model.flat();
        let (transform, keys) = (model.transform, &model.keys[..]);
        let layout = Layout { transform, edges: &flat, offsets: &offsets, keys };
        let (keys, first, groups, pattern_weights) = model.table();
        let table = Patterns::new(&keys, &first, &groups).unwrap();

        let mut found = vec![9; size];
        pattern_keys(&layout, &outputs, &mut found).unwrap();
        let expected: Vec<u64> = outputs.chunks(dim).map(|row| model.key(row)).collect();
        prop_assert_eq!(found, expected);

        let mut scores = vec![f64::NAN; size];
        let weights = Weights { patterns: &pattern_weights, bins: &model.weights };
        score_additive(&layout, &table, &weights, &outputs, &mut scores).unwrap();
        for (row, score) in outputs.chunks(dim).zip(scores) {
            prop_assert_eq!(score.to_bits(), model.score(row).to_bits());
        }

        let mut bins = vec![7; model.weights.len()];
        let mut seen = vec![7; keys.len() + 1];
        count_additive(&layout, &table, &outputs, &mut bins, &mut seen).unwrap();
        let mut expected = vec![0; model.weights.len()];
        let mut patterns = HashMap::<Option<u64>, u64>::new();
        for row in outputs.chunks(dim) {
            let pattern = model.pattern(row);
            *patterns.entry(pattern.map(|p| model.patterns[p])).or_default() += 1;
            let base = pattern.map_or(0, |p| model.groups[p] as usize * model.total());
            for place in model.places(row) {
                if let Some(count) = expected.get_mut(base + place) {
                    *count += 1;
                }
            }
        }
        prop_assert_eq!(bins, expected);
        for (place, count) in seen.into_iter().enumerate() {
            let key = keys.get(place).copied();
            prop_assert_eq!(count, patterns.get(&key).copied().unwrap_or(0));
        }
    }
}

/// A score does not depend on how the outputs are cut, and long rows are scored like short ones.
#[test]
fn tiles_of_every_size_and_rows_of_every_length() {
    for dim in [1_usize, 2, 7, 127, 128, 129, 3000] {
        for size in [0_usize, 1, 7, 8, 9, 127, 128, 129, 300] {
            let edges = vec![vec![-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0]; dim];
            let total = 9 * dim;
            let weights: Vec<f64> = (0..total).map(|i| ((i * 7) % 13) as f64 / 7.0).collect();
            let model = Model {
                transform: Transform::Differences,
                edges,
                keys: vec![],
                patterns: vec![],
                groups: vec![],
                pattern_weights: vec![],
                weights,
            };
            let outputs: Vec<f64> =
                (0..dim * size).map(|i| ((i * i) % 11) as f64 / 3.0 - 1.0).collect();
            let (flat, offsets) = model.flat();
            let layout = Layout {
                transform: model.transform,
                edges: &flat,
                offsets: &offsets,
                keys: &model.keys,
            };
            let table = Patterns::new(&[], &[0, 0, 0], &[]).unwrap();
            let weights = Weights { patterns: &[], bins: &model.weights };
            let mut scores = vec![f64::NAN; size];
            score_additive(&layout, &table, &weights, &outputs, &mut scores).unwrap();
            for (row, score) in outputs.chunks(dim).zip(scores) {
                assert_eq!(score, model.score(row), "{dim} {size}");
            }
        }
    }
}

#[test]
fn bad_models_are_named_and_never_panic() {
    let good = Layout {
        transform: Transform::Values,
        edges: &[0.0, 1.0],
        offsets: &[0, 1, 2],
        keys: &[0; 6],
    };
    let outputs = [0.5; 6];
    let table = Patterns::new(&[0], &[0, 1, 1], &[0]).unwrap();
    let score = |layout: &Layout<'_>, table: &Patterns<'_>, patterns: &[f64], bins: &[f64]| {
        let mut out = [0.0; 3];
        score_additive(layout, table, &Weights { patterns, bins }, &outputs, &mut out)
            .map(|()| out)
            .map_err(|error| error.to_string())
    };
    assert_eq!(score(&good, &table, &[2.0], &[1.0; 6]), Ok([4.0; 3]));
    assert_eq!(score(&good, &table, &[2.0], &[]), Ok([2.0; 3]));
    let refused =
        |layout: &Layout<'_>| score(layout, &table, &[2.0], &vec![1.0; layout.bins()]).unwrap_err();
    for (layout, start) in [
        (Layout { edges: &[f64::NAN, 1.0], ..good }, "edges must be numbers"),
        (Layout { edges: &[0.0, 1.0, 2.0], ..good }, "offsets must be from 0"),
        (Layout { offsets: &[0, 3, 2], ..good }, "offsets must be in nondecreasing"),
        (Layout { offsets: &[1, 1, 2], ..good }, "offsets must be from 0"),
        (Layout { offsets: &[0, -1, 2], ..good }, "offsets must be in nondecreasing"),
        (Layout { edges: &[], offsets: &[0], ..good }, "outputs must be rows of at least one"),
        (Layout { edges: &[], offsets: &[], ..good }, "outputs must be rows of at least one"),
        (Layout { keys: &[0; 5], ..good }, "keys must be one for each of 6 bins"),
        (Layout { edges: &[1.0, 0.0], offsets: &[0, 2, 2], ..good }, "edges must be numbers"),
        (Layout { edges: &[0.0; 3], offsets: &[0, 1, 2, 3], ..good }, "outputs must be 3 rows"),
    ] {
        let error = refused(&layout);
        assert!(error.starts_with(start), "{error}");
    }
    let error = score(&good, &table, &[], &[1.0; 6]).unwrap_err();
    assert!(error.starts_with("pattern weights must be one for each"), "{error}");
    let error = score(&good, &table, &[2.0], &[1.0; 7]).unwrap_err();
    assert!(error.starts_with("weights must be a whole number of groups of 6"), "{error}");
    let far = Patterns::new(&[0], &[0, 1, 1], &[1]).unwrap();
    let error = score(&good, &far, &[2.0], &[1.0; 6]).unwrap_err();
    assert!(error.starts_with("groups must be below 1"), "{error}");
    // Places out of order find no pattern.
    let wild = Patterns::new(&[0], &[9, 1, 1], &[0]).unwrap();
    assert_eq!(score(&good, &wild, &[2.0], &[1.0; 6]), Ok([2.0; 3]));

    for (keys, first, groups, start) in [
        (&[0][..], &[0, 1][..], &[0][..], "first must be of length"),
        (&[0], &[0, 0, 0, 1], &[0], "first must be of length"),
        (&[0], &[], &[0], "first must be of length"),
        (&[0], &[0, 1, 2], &[0], "first must be ending"),
        (&[0], &[0, 1, 1], &[], "groups must be one for each"),
    ] {
        let error = Patterns::new(keys, first, groups).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }

    let mut short = [0; 1];
    let error = count_additive(&good, &table, &outputs, &mut [0; 6], &mut short).unwrap_err();
    assert!(error.to_string().starts_with("pattern counts must be one more"), "{error}");
    let error = count_additive(&good, &table, &outputs, &mut [0; 5], &mut [0; 2]).unwrap_err();
    assert!(error.to_string().starts_with("counts must be a whole number"), "{error}");
    let error = count_additive(&good, &table, &[0.5; 5], &mut [0; 6], &mut [0; 2]).unwrap_err();
    assert!(error.to_string().starts_with("outputs must be 2 rows"), "{error}");
    let error = pattern_keys(&good, &outputs, &mut [0; 2]).unwrap_err();
    assert!(error.to_string().starts_with("outputs must be 2 rows"), "{error}");
    assert!(Transform::named("sums").is_err());
}
