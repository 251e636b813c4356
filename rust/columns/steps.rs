//! Gaps between sorted values: which split no real number.

use super::grains::Grain;

/// Tolerances that a long computation may spread one number over, where nothing else is near...
const MAX_RUN_TOLERANCES: f64 = 512.0;
/// ...which means so many times the width of the run.
const RUN_ISOLATION_FACTOR: f64 = 1000.0;
/// A run of more than so many values is one number only where there are so many runs.
const CROWDED_RUN_VALUES: usize = 16;
const MIN_CROWDED_RUNS: usize = 3;
/// Edges in a continuum are at least so many tolerances from each other.
const CELL_TOLERANCES: f64 = 16.0;

/// How two neighbouring sorted values differ.
#[repr(i8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// One number: equal, or in a run that a long computation leaves and that nothing is near.
    Same = 0,
    /// Within what rounding may have moved them by.
    Near = 1,
    /// Surely two numbers.
    Apart = 2,
}

/// Neighbouring values that no wide gap parts.
struct Run {
    first: usize,
    last: usize,
    is_crowded: bool,
}

/// Returns a limit on the gaps inside runs of sorted values: most gaps are wider than any tolerance
/// there, and need no tolerance of their own.
fn widest_run(values: &[f64], grain: &Grain) -> f64 {
    let largest = [values.first(), values.last()].into_iter().flatten();
    MAX_RUN_TOLERANCES * grain.at(largest.fold(0.0, |size, value| value.abs().max(size)))
}

/// Classifies each step between neighbouring sorted finite values; `steps` is overwritten.
pub(crate) fn classify(values: &[f64], grain: &Grain, steps: &mut Vec<Step>) {
    let gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
    steps.clear();
    if grain.is_exact() {
        steps.extend(gaps.map(|gap| if gap > 0.0 { Step::Apart } else { Step::Same }));
        return;
    }
    if values.is_empty() {
        return;
    }
    let limit = widest_run(values, grain);
    let (mut runs, mut first, mut before, mut moves) = (Vec::new(), 0, f64::INFINITY, 0);
    let mut end_run = |first: usize, last: usize, beyond: f64, moves: usize| {
        let width = values[last] - values[first];
        if width > 0.0
            && beyond >= RUN_ISOLATION_FACTOR * width
            && width <= MAX_RUN_TOLERANCES * grain.at(values[last])
        {
            // Noise of a few hundred last places is such a run as well, but one of many values.
            runs.push(Run { first, last, is_crowded: moves >= CROWDED_RUN_VALUES });
        }
    };
    for (place, gap) in gaps.enumerate() {
        let mut is_wide = true;
        let mut step = Step::Apart;
        if gap <= limit {
            let tolerance = grain.at(values[place].abs().max(values[place + 1].abs()));
            if gap <= 2.0 * tolerance {
                step = if gap > 0.0 { Step::Near } else { Step::Same };
            }
            is_wide = gap > MAX_RUN_TOLERANCES * tolerance;
        }
        steps.push(step);
        if is_wide {
            end_run(first, place, before.min(gap), moves);
            (first, before, moves) = (place + 1, gap, 0);
        } else {
            moves += usize::from(gap > 0.0);
        }
    }
    end_run(first, values.len() - 1, before, moves);
    let joins_crowded = runs.len() >= MIN_CROWDED_RUNS;
    for run in runs.iter().filter(|run| joins_crowded || !run.is_crowded) {
        steps[run.first..run.last].fill(Step::Same);
    }
}

/// Places between sorted values where an edge splits no real number.
#[derive(Default)]
pub(crate) struct Cuts {
    /// Increasing; empty where an edge may lie between any two neighbours.
    places: Vec<usize>,
    /// How many there are.
    count: usize,
}

impl Cuts {
    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The first of both neighbours around a place.
    pub(crate) fn at(&self, index: usize) -> usize {
        if self.has_all() { index } else { self.places[index] }
    }

    /// Whether an edge may lie between any two neighbours.
    pub(crate) fn has_all(&self) -> bool {
        self.places.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.count).map(|index| self.at(index))
    }

    /// Finds them: an edge between sorted finite values i and i + 1 splits no real number.
    ///
    /// Where values lie so close that nothing is apart, edges are at least 16 tolerances from each
    /// other, so that rounding moves few values from bin to bin. `steps` is overwritten.
    pub(crate) fn find(&mut self, values: &[f64], grain: &Grain, steps: &mut Vec<Step>) {
        self.places.clear();
        self.count = values.len().saturating_sub(1);
        let limit = if grain.is_exact() { 0.0 } else { widest_run(values, grain) };
        let mut gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
        if gaps.all(|gap| gap > limit) {
            return;
        }
        if grain.is_exact() {
            find_changes(values, &mut self.places);
        } else {
            find_wide_steps(values, grain, steps, &mut self.places);
        }
        self.count = self.places.len();
    }
}

/// Finds where sorted values differ.
fn find_changes(values: &[f64], places: &mut Vec<usize>) {
    // Without a branch: values of a small alphabet repeat at random.
    places.resize(values.len(), 0);
    let mut count = 0;
    for (place, pair) in values.windows(2).enumerate() {
        places[count] = place;
        count += usize::from(pair[1] - pair[0] > 0.0);
    }
    places.truncate(count);
}

/// Finds steps apart, and those at which a continuum begins another cell.
fn find_wide_steps(values: &[f64], grain: &Grain, steps: &mut Vec<Step>, places: &mut Vec<usize>) {
    classify(values, grain, steps);
    // How many cells of a continuum lie below each value; a run too narrow for two has no cut.
    let (mut passed, mut start) = (0.0, 0.0);
    let has_near = steps.contains(&Step::Near);
    for (place, step) in steps.iter().enumerate() {
        if *step == Step::Apart {
            places.push(place);
            start = passed;
        } else if has_near {
            let (low, high) = (values[place], values[place + 1]);
            let cell = CELL_TOLERANCES * grain.at(0.5 * high + 0.5 * low);
            let reached: f64 = passed + (high - low) / cell;
            if *step == Step::Near && (reached - start).floor() > (passed - start).floor() {
                places.push(place);
            }
            passed = reached;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(values: &[f64], grain: &Grain) -> Vec<Step> {
        let mut steps = vec![Step::Near; 3];
        classify(values, grain, &mut steps);
        steps
    }

    #[test]
    fn steps_are_same_near_or_apart() {
        use Step::{Apart, Near, Same};
        let (grain, exact) = (Grain::new(53, 1.0, 0.0), Grain::new(0, 0.0, 0.0));
        let values = [1.0, 1.0, 1.0 + 4e-16, 1.5, 2.0];
        assert_eq!(steps_of(&values, &grain), [Same, Same, Apart, Apart]);
        assert_eq!(steps_of(&values, &exact), [Same, Apart, Apart, Apart]);
        let dense: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i) * 4e-16).collect();
        assert!(steps_of(&dense, &grain).iter().all(|step| *step == Near));
        for grain in [grain, exact] {
            assert_eq!(steps_of(&[], &grain), []);
            assert_eq!(steps_of(&[1.0], &grain), []);
        }
    }

    #[test]
    fn cuts_lie_apart_or_are_16_tolerances_from_each_other() {
        let values: Vec<f64> = (0..500).map(f64::from).collect();
        let cuts_of = |values: &[f64], grain: Grain| {
            let mut cuts = Cuts { places: vec![7; 9], count: 3 };
            cuts.find(values, &grain, &mut Vec::new());
            assert_eq!(cuts.iter().count(), cuts.len());
            cuts.iter().collect::<Vec<_>>()
        };
        let (exact, fine) = (Grain::new(0, 0.0, 0.0), Grain::new(53, 1.0, 0.0));
        for grain in [exact, fine] {
            assert_eq!(cuts_of(&values, grain), (0..499).collect::<Vec<_>>());
            assert_eq!(cuts_of(&[1.0, 1.0, 2.0, 2.0, 3.0], grain), [1, 3]);
            for values in [&[][..], &[1.0], &[1.0; 5]] {
                assert!(cuts_of(values, grain).is_empty());
            }
        }
        // Tolerances of 1 at every value: a cell of 16 for 499.
        assert_eq!(cuts_of(&values, Grain::new(0, 0.0, 1.0)).len(), 499 / 16);
    }
}
