//! The tree gives what the distances of all pairs give, bit for bit.

use std::sync::atomic::AtomicBool;

use dpcore::neighbours::distance::{Coordinate, squared};
use dpcore::neighbours::{Inside, Method, Nearest, Search, Sets, Shells, inside, nearest};
use dpcore::{Cpu, Error, Options};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A path and a number of threads.
fn options((cpu, threads): (Cpu, usize)) -> Options<'static> {
    Options::new().cpu(cpu).threads(threads)
}

/// Numbers of one kind: a box, a lattice, clusters, few distinct rows, one row, one line, or a box
/// with a huge and a tiny coordinate.
fn rows(kind: usize, (size, dim): (usize, usize), offset: f64, rng: &mut StdRng) -> Vec<f64> {
    let uniform = |rng: &mut StdRng| rng.random_range(-1.0..1.0);
    let few: Vec<f64> = (0..5 * dim).map(|_| uniform(rng)).collect();
    let mut rows = Vec::with_capacity(size * dim);
    for _ in 0..size {
        let pick = rng.random_range(0..5) * dim;
        let along: f64 = uniform(rng);
        for c in 0..dim {
            let value = match kind {
                0 => uniform(rng),
                1 => f64::from(rng.random_range(-3..=3)),
                2 => few[pick + c] + 1e-9 * uniform(rng),
                3 => few[pick + c],
                4 => 0.25,
                5 => along,
                _ => uniform(rng) * [1e200, 1e-200][c % 2],
            };
            rows.push(value + offset);
        }
    }
    rows
}

const KINDS: usize = 7;

struct Case<T> {
    sets: [Vec<T>; 2],
    dim: usize,
    queries: Vec<i64>,
    points: Vec<i64>,
}

impl<T: Coordinate> Case<T> {
    /// Every row of the first set and some of the second are searched for among the second.
    fn new([first, second]: &[Vec<f64>; 2], dim: usize, of: impl Fn(f64) -> T) -> Self {
        let sets = [first, second].map(|rows| rows.iter().map(|&value| of(value)).collect());
        let (split, all) = (first.len() / dim, (first.len() + second.len()) / dim);
        let queries = (0..split as i64).chain((split as i64..all as i64).step_by(5)).collect();
        // Not in the order of the rows, so that a place is no number of a row.
        Self { sets, dim, queries, points: (split as i64..all as i64).rev().collect() }
    }

    fn search(&self, method: Method) -> Search<'_, T> {
        let sets = Sets::new(&self.sets[0], &self.sets[1], self.dim).unwrap();
        Search::new(sets, &self.queries, &self.points).unwrap().by(method)
    }

    fn row(&self, index: i64) -> &[T] {
        let sets = Sets::new(&self.sets[0], &self.sets[1], self.dim).unwrap();
        sets.row(usize::try_from(index).unwrap())
    }

    /// All distances of a query, sorted by (squared, place).
    fn sorted(&self, query: i64) -> Vec<(f64, u32)> {
        let distance = |&point: &i64| squared(self.row(query), self.row(point));
        let mut all: Vec<(f64, u32)> = self.points.iter().map(distance).zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all
    }

    fn nearest(&self, method: Method, depth: usize, on: (Cpu, usize)) -> Nearest {
        let found = nearest(self.search(method), depth, &options(on)).unwrap();
        // How the search went; not a part of the answer.
        Nearest { rescans: 0, ..found }
    }

    fn inside(
        &self,
        method: Method,
        (starts, radii): Radii,
        cap: usize,
        on: (Cpu, usize),
    ) -> Inside {
        let shells = Shells::new(starts, radii, self.queries.len()).unwrap();
        let found = inside(self.search(method), shells, cap, &options(on)).unwrap();
        // How the search went; not a part of the answer.
        Inside { rescans: 0, ..found }
    }
}

type Radii<'a> = (&'a [i64], &'a [f64]);

/// By the definition alone.
fn all_distances<T: Coordinate>(case: &Case<T>, depth: usize) -> Nearest {
    let mut expected = Nearest { starts: vec![0], ..Nearest::default() };
    for &query in &case.queries {
        let sorted = case.sorted(query);
        let end = sorted[depth.min(sorted.len()) - 1].0;
        for (value, place) in sorted.into_iter().filter(|pair| pair.0 <= end) {
            expected.squared.push(value);
            expected.places.push(place);
        }
        expected.starts.push(expected.places.len() as i64);
    }
    expected
}

/// By the definition alone.
fn all_ranked<T: Coordinate>(case: &Case<T>, (starts, radii): Radii, cap: usize) -> Inside {
    let mut expected = Inside { own_starts: vec![0], ..Inside::default() };
    for (&query, ends) in case.queries.iter().zip(starts.windows(2)) {
        let own = &radii[usize::try_from(ends[0]).unwrap()..usize::try_from(ends[1]).unwrap()];
        let sorted = case.sorted(query);
        let mut ranked: Vec<(usize, u32)> = sorted
            .iter()
            .map(|&(value, place)| (own.iter().filter(|&&radius| radius < value).count(), place))
            .collect();
        ranked.sort_unstable();
        let up_to = |shell: usize| ranked.iter().filter(|pair| pair.0 <= shell).count();
        let (first, within) = match own.len() {
            0 => (0, 0),
            shells => (up_to(0), up_to(shells - 1)),
        };
        let inverted = 2 * first > ranked.len() && ranked.len() - first < within;
        let listed = if inverted { &ranked[first..] } else { &ranked[..within] };
        let capped = listed.len() > cap;
        let skipped = if inverted { first } else { 0 };
        for shell in 0..own.len() {
            expected.upto.push(if capped { 0 } else { (up_to(shell) - skipped) as i64 });
        }
        if !capped {
            expected.places.extend(listed.iter().map(|pair| pair.1));
        }
        expected.own_starts.push(expected.places.len() as i64);
        expected.inverted.push(inverted && !capped);
        expected.capped.push(capped);
    }
    expected
}

/// The tree, all pairs and the definition, on one CPU and number of threads.
fn agree<T: Coordinate>(case: &Case<T>, (depth, cap): (usize, usize), on: (Cpu, usize)) {
    let expected = all_distances(case, depth);
    let by_tree = case.nearest(Method::Tree, depth, on);
    assert_eq!(by_tree, expected);
    assert_eq!(by_tree, case.nearest(Method::Pairs, depth, on));
    // The shells of the nearest; the next number below them; wider ones, and queries without any.
    let below: Vec<f64> = expected.squared.iter().map(|radius| radius.next_down()).collect();
    let mut wide = (vec![0], Vec::new());
    for (i, ends) in expected.starts.windows(2).enumerate() {
        let own = [ends[0], ends[1]].map(|end| usize::try_from(end).unwrap());
        if i % 3 > 0 {
            wide.1
                .extend(expected.squared[own[0]..own[1]].iter().map(|radius| 40.0 * radius + 0.1));
        }
        wide.0.push(wide.1.len() as i64);
    }
    let starts = expected.starts;
    for (starts, radii) in [(starts.clone(), expected.squared), (starts, below), wide] {
        let expected = all_ranked(case, (&starts, &radii), cap);
        let by_tree = case.inside(Method::Tree, (&starts, &radii), cap, on);
        assert_eq!(by_tree, expected);
        assert_eq!(case.inside(Method::Pairs, (&starts, &radii), cap, on), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_tree_agrees_with_all_pairs(
        kind in 0..KINDS,
        dim in 1..=16usize,
        sizes in (1..60usize, 1..400usize),
        offset in prop::sample::select(vec![0.0, 1e8, -3e15]),
        (depth, cap) in (1..90usize, prop::sample::select(vec![0, 3, 40, 150, 1000])),
        threads in 1..4usize,
        narrow: bool,
        seed: u64,
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let sets = [sizes.0, sizes.1].map(|size| rows(kind, (size, dim), offset, &mut rng));
        let cpus = Cpu::present();
        let on = (cpus[seed as usize % cpus.len()], threads);
        if narrow && kind + 1 < KINDS {
            agree(&Case::new(&sets, dim, |value| value as f32), (depth, cap), on);
        } else {
            agree(&Case::new(&sets, dim, |value| value), (depth, cap), on);
        }
    }
}

#[test]
fn threads_blocks_and_cpus_change_nothing() {
    let mut rng = StdRng::seed_from_u64(1);
    for kind in [0, 1, 2] {
        let sets = [2500, 3000].map(|size| rows(kind, (size, 3), 0.0, &mut rng));
        let case = Case::new(&sets, 3, |value| value);
        let first = case.nearest(Method::Pairs, 12, (Cpu::Baseline, 1));
        let radii = (&first.starts[..], &first.squared[..]);
        let ranked = case.inside(Method::Pairs, radii, 700, (Cpu::Baseline, 1));
        for cpu in Cpu::present() {
            for (method, threads) in [(Method::Tree, 1), (Method::Tree, 3), (Method::Faster, 2)] {
                let again = case.nearest(method, 12, (cpu, threads));
                assert_eq!(again, first);
                assert_eq!(case.inside(method, radii, 700, (cpu, threads)), ranked);
            }
        }
    }
}

#[test]
fn overflow_and_underflow_are_as_in_the_distances() {
    for scale in [1e300, 1e-170, 1e-310] {
        let mut rng = StdRng::seed_from_u64(2);
        let sets = [30, 300].map(|size| {
            let rows = rows(0, (size, 2), 0.0, &mut rng);
            rows.iter().map(|value| value * scale).collect::<Vec<f64>>()
        });
        agree(&Case::new(&sets, 2, |value| value), (7, 1000), (Cpu::Baseline, 1));
    }
}

#[test]
fn what_is_not_finite_is_found_by_pairs() {
    let mut rng = StdRng::seed_from_u64(3);
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for (set, value) in numbers.iter().flat_map(|&value| [(0, value), (1, value)]) {
        let mut sets = [40, 200].map(|size| rows(0, (size, 2), 0.0, &mut rng));
        sets[set][31] = value;
        let case = Case::new(&sets, 2, |value| value);
        let on = (Cpu::Baseline, 1);
        let by_tree = case.nearest(Method::Tree, 5, on);
        assert_eq!(by_tree, case.nearest(Method::Pairs, 5, on));
        for radius in [0.3, f64::INFINITY] {
            let radii = vec![radius; case.queries.len()];
            let starts: Vec<i64> = (0..=radii.len() as i64).collect();
            let by_tree = case.inside(Method::Tree, (&starts, &radii), 90, on);
            assert_eq!(by_tree, case.inside(Method::Pairs, (&starts, &radii), 90, on));
        }
    }
}

#[test]
fn equal_points_are_no_burden() {
    // A tree that splits between different values only would never end or be as deep as large.
    let sets = [vec![0.0; 2 * 600], vec![-0.0; 2 * 100_000]];
    let case = Case::new(&sets, 2, |value| value);
    let queries = &case.queries[..600];
    let search =
        Search::new(Sets::new(&case.sets[0], &case.sets[1], 2).unwrap(), queries, &case.points)
            .unwrap();
    let starts: Vec<i64> = (0..=600).collect();
    let radii = vec![0.0; 600];
    let shells = Shells::new(&starts, &radii, 600).unwrap();
    let one = options((Cpu::Baseline, 1));
    let found = inside(search.by(Method::Tree), shells, 5, &one).unwrap();
    assert!(found.inverted.iter().all(|&inverted| inverted));
    assert!(found.places.is_empty());
    let few = Search::new(
        Sets::new(&case.sets[0], &case.sets[1], 2).unwrap(),
        &queries[..3],
        &case.points,
    )
    .unwrap();
    let found = nearest(few.by(Method::Tree), 4, &one).unwrap();
    assert_eq!(found.starts, [0, 100_000, 200_000, 300_000]);
    assert!(found.places[100_000..200_000].iter().copied().eq(0..100_000));
}

#[test]
fn a_stop_is_an_error() {
    let mut rng = StdRng::seed_from_u64(4);
    let sets = [50, 500].map(|size| rows(0, (size, 2), 0.0, &mut rng));
    let case = Case::new(&sets, 2, |value| value);
    let stop = AtomicBool::new(true);
    let stop = options((Cpu::Baseline, 2)).stop(&stop);
    let stopped = nearest(case.search(Method::Tree), 4, &stop);
    assert_eq!(stopped, Err(Error::Interrupted));
    let (starts, radii) = (vec![0; case.queries.len() + 1], vec![]);
    let shells = Shells::new(&starts, &radii, case.queries.len()).unwrap();
    let stopped = inside(case.search(Method::Tree), shells, 4, &stop);
    assert_eq!(stopped, Err(Error::Interrupted));
}
