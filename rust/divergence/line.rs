//! Divergences of two sets of numbers: sorted once, swept for every direction and replicate.

use super::MOST_ROWS;
use super::cells::{Values, check_alphas, evaluate};
use super::replicates::Replicates;
use super::sorted::{Direction, Repeats, sort_both};
use super::tally::is_unseen;
use crate::error::Error;
use crate::options::Options;

pub use super::resampling::Resampling;

/// Cells of replicates that are held at a time: 16 bytes each, and 12 for their places.
const MOST_CELLS: usize = 1 << 22;

/// Divergences of two sets of numbers in both directions, and what they rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// For each direction.
    pub values: [Values; 2],
    /// Rows of the denominator that a ball reaches, for each direction.
    pub depth: [u64; 2],
    /// Share of the numerator's rows on atoms that the denominator does not have.
    pub unseen_share: [f64; 2],
    /// Share of each set's rows on atoms of either direction.
    pub atom_share: [f64; 2],
    /// Rows on repeated values over such values; NaN if fewer than 1 % of all rows are.
    pub rows_per_atom: f64,
    /// Divergences by replicate, direction and order.
    pub replicates: Vec<f64>,
}

/// The common-ball divergences of two sets of numbers in both directions, at every order.
///
/// # Errors
///
/// Sets that are empty, not finite or of 2^31 rows and more; k = 0; orders that are not positive;
/// labels or weights that do not fit the sets; options out of range; [`Error::Interrupted`].
pub fn line_ball(
    sets: [&[f64]; 2],
    alphas: &[f64],
    k: u64,
    resampling: Resampling<'_>,
    options: &Options<'_>,
) -> Result<Line, Error> {
    let (_, threads, stop) = options.settle()?;
    check_alphas(alphas)?;
    let replicates = check(sets, k, resampling)?;
    let sorted = sort_both(sets, resampling, threads, stop)?;
    let Repeats { atoms, share, rows_per_atom } = Repeats::of(&sorted);
    let directions = [(0, &atoms[0]), (1, &atoms[1])];
    let directions = directions.map(|(own, atoms)| Direction::new(&sorted, own, atoms, k));
    let all = Replicates { sorted: &sorted, directions: &directions, resampling };
    let base = all.base(threads, stop)?;
    let unseen_share = [0, 1].map(|own| {
        let unseen = base[own].cells.iter().filter(|(key, _)| is_unseen(*key));
        unseen.map(|&(_, rows)| rows).sum::<f64>() / sets[own].len() as f64
    });
    let most = base.iter().map(|set| set.cells.len()).sum::<usize>().max(1);
    let [first, second] = base.map(|set| evaluate(&[set], alphas, threads, stop));
    let batch = (MOST_CELLS / most).max(1);
    let mut values = vec![0.0; replicates * 2 * alphas.len()];
    for start in (0..replicates).step_by(batch) {
        let range = start..(start + batch).min(replicates);
        let counted = all.count(range.clone(), threads, stop)?;
        for (own, sets) in counted.iter().enumerate() {
            for (i, found) in range.clone().zip(evaluate(sets, alphas, threads, stop)?) {
                let at = (2 * i + own) * alphas.len();
                values[at..at + alphas.len()].copy_from_slice(&found.value);
            }
        }
    }
    Ok(Line {
        values: [first?, second?].map(|mut values| values.swap_remove(0)),
        depth: [directions[0].depth, directions[1].depth],
        unseen_share,
        atom_share: share,
        rows_per_atom,
        replicates: values,
    })
}

/// Checks the arguments; the number of replicates.
fn check(sets: [&[f64]; 2], k: u64, resampling: Resampling<'_>) -> Result<usize, Error> {
    let names = [["values0", "labels0", "weights0"], ["values1", "labels1", "weights1"]];
    if k == 0 || k >= MOST_ROWS {
        return Err(Error::invalid("k", "from 1 to 2^31 - 1", k));
    }
    let mut replicates = [0; 2];
    for set in 0..2 {
        let (values, names) = (sets[set], names[set]);
        if values.is_empty() || values.len() as u64 >= MOST_ROWS {
            return Err(Error::invalid(names[0], "from 1 to 2^31 - 1 rows", values.len()));
        }
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(Error::invalid(names[0], "finite", value));
        }
        replicates[set] = match resampling {
            Resampling::None => 0,
            Resampling::Groups(labels, units) => {
                check_labels(names[1], labels[set], units[set], values.len())?;
                units[set]
            }
            Resampling::Weights(weights) => {
                check_weights(names[2], weights[set], values.len())?;
                weights[set].len() / values.len()
            }
        };
    }
    match resampling {
        Resampling::Weights(_) if replicates[0] != replicates[1] => {
            let requirement = format!("for {} replicates, as weights0", replicates[0]);
            Err(Error::invalid("weights1", requirement, replicates[1]))
        }
        Resampling::Weights(_) => Ok(replicates[0]),
        _ => Ok(replicates[0] + replicates[1]),
    }
}

fn check_labels(
    name: &'static str,
    labels: &[i64],
    units: usize,
    rows: usize,
) -> Result<(), Error> {
    if units > rows {
        return Err(Error::invalid(name, format!("of at most {rows} groups"), units));
    }
    if labels.len() != rows {
        return Err(Error::invalid(name, format!("one for each of {rows} rows"), labels.len()));
    }
    match labels.iter().find(|&&label| label.cast_unsigned() >= units as u64) {
        Some(label) => Err(Error::invalid(name, format!("from 0 to {units} - 1"), label)),
        None => Ok(()),
    }
}

fn check_weights(name: &'static str, weights: &[u32], rows: usize) -> Result<(), Error> {
    if !weights.len().is_multiple_of(rows) {
        return Err(Error::invalid(name, format!("rows of {rows} weights"), weights.len()));
    }
    for row in weights.chunks_exact(rows) {
        let total: u64 = row.iter().map(|&weight| u64::from(weight)).sum();
        if total >= MOST_ROWS {
            return Err(Error::invalid(name, "below 2^31 in sum", total));
        }
    }
    Ok(())
}
