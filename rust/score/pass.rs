//! The one pass over outputs that finds every row's bins, pattern and group.

use super::additive::{Column, Layout, Patterns, Transform, Weights, groups};
use super::bins::TILE;
use super::sorting::Sorting;
use crate::error::Error;

/// Numbers of a tile of long rows.
const TILE_NUMBERS: usize = 1 << 14;

/// The pattern of every row.
///
/// # Errors
///
/// A layout or lengths that do not fit.
pub fn pattern_keys(layout: &Layout<'_>, outputs: &[f64], out: &mut [u64]) -> Result<(), Error> {
    layout.check(outputs, out.len())?;
    let mut pass = Pass::new(layout, out.len())?;
    let (dim, step) = (layout.dim(), pass.step);
    for (rows, out) in outputs.chunks(step * dim).zip(out.chunks_mut(step)) {
        pass.read(rows);
        out.copy_from_slice(&pass.keys[..out.len()]);
    }
    Ok(())
}

/// The score of every row: the weight of its pattern, then those of its bins, added in the order
/// of the columns.
///
/// # Errors
///
/// A layout, patterns or lengths that do not fit; a pattern of a group that has no weights.
pub fn score_additive(
    layout: &Layout<'_>,
    patterns: &Patterns<'_>,
    weights: &Weights<'_>,
    outputs: &[f64],
    out: &mut [f64],
) -> Result<(), Error> {
    layout.check(outputs, out.len())?;
    if weights.patterns.len() != patterns.keys.len() {
        let lengths = (weights.patterns.len(), patterns.keys.len());
        return Err(Error::invalid("pattern weights", "one for each pattern", lengths));
    }
    let groups = groups("weights", weights.bins.len(), layout.bins())?;
    let mut pass = Pass::new(layout, out.len())?;
    let (dim, step) = (layout.dim(), pass.step);
    for (rows, scores) in outputs.chunks(step * dim).zip(out.chunks_mut(step)) {
        pass.read(rows);
        pass.place(patterns, scores.len(), groups)?;
        for (score, &place) in scores.iter_mut().zip(&pass.places) {
            *score = weights.patterns.get(place).copied().unwrap_or(0.0);
        }
        if groups > 0 {
            pass.add(weights.bins, scores);
        }
    }
    Ok(())
}

/// Counts how often each bin of each group, and each pattern, occurs; the last pattern count is
/// that of the rows whose pattern is not in the table.
///
/// # Errors
///
/// A layout, patterns or lengths that do not fit; a pattern of a group that is not counted.
pub fn count_additive(
    layout: &Layout<'_>,
    patterns: &Patterns<'_>,
    outputs: &[f64],
    bins: &mut [u64],
    pattern_counts: &mut [u64],
) -> Result<(), Error> {
    let dim = layout.dim().max(1);
    layout.check(outputs, outputs.len() / dim)?;
    if pattern_counts.len() != patterns.keys.len() + 1 {
        let lengths = (pattern_counts.len(), patterns.keys.len());
        return Err(Error::invalid("pattern counts", "one more than patterns", lengths));
    }
    let groups = groups("counts", bins.len(), layout.bins())?;
    bins.fill(0);
    pattern_counts.fill(0);
    let mut pass = Pass::new(layout, outputs.len() / dim)?;
    for rows in outputs.chunks(pass.step * dim) {
        let size = rows.len() / dim;
        pass.read(rows);
        pass.place(patterns, size, groups)?;
        for &place in &pass.places[..size] {
            pattern_counts[place.min(patterns.keys.len())] += 1;
        }
        if groups > 0 {
            pass.count(bins, size);
        }
    }
    Ok(())
}

/// Bins, patterns and groups of one tile of rows.
struct Pass<'a> {
    transform: Transform,
    columns: Vec<Column>,
    /// What each bin adds to the pattern; empty where there are no patterns.
    bin_keys: &'a [u64],
    total: usize,
    /// Rows in a tile.
    step: usize,
    /// The rows of a tile, column after column.
    values: Vec<f64>,
    bins: Vec<u32>,
    sorting: Sorting,
    keys: Vec<u64>,
    /// Where each row's pattern is in the table; beyond its end if it is not.
    places: Vec<usize>,
    /// Where the bins of each row's group begin.
    bases: Vec<usize>,
}

impl<'a> Pass<'a> {
    fn new(layout: &Layout<'a>, rows: usize) -> Result<Self, Error> {
        let step = (TILE_NUMBERS / layout.dim()).clamp(8, TILE);
        Ok(Self {
            transform: layout.transform,
            columns: layout.columns(rows)?,
            bin_keys: layout.keys,
            total: layout.bins(),
            step,
            values: vec![0.0; step * layout.dim()],
            sorting: match layout.transform {
                Transform::Sorted => Sorting::new(layout.dim()),
                _ => Sorting::new(1),
            },
            bins: vec![0; step * layout.dim()],
            keys: vec![0; step],
            places: vec![usize::MAX; step],
            bases: vec![0; step],
        })
    }

    /// Finds the bins and patterns of at most `step` rows.
    fn read(&mut self, rows: &[f64]) {
        let dim = self.columns.len();
        let size = rows.len() / dim;
        self.load(rows, size);
        let keys = &mut self.keys[..size];
        keys.fill(0);
        let values = self.values.chunks_exact(self.step);
        let bins = self.bins.chunks_exact_mut(self.step);
        for ((column, values), bins) in self.columns.iter().zip(values).zip(bins) {
            let bins = &mut bins[..size];
            column.search.find(&values[..size], bins);
            if let Some(bin_keys) = self.bin_keys.get(column.range()) {
                for (key, &bin) in keys.iter_mut().zip(&*bins) {
                    *key = key.wrapping_add(bin_keys[bin as usize]);
                }
            }
        }
    }

    /// Loads the columns of `size` rows.
    fn load(&mut self, rows: &[f64], size: usize) {
        let (dim, step) = (self.columns.len(), self.step);
        for (i, values) in self.values.chunks_exact_mut(step).enumerate() {
            for (value, row) in values.iter_mut().zip(rows.chunks_exact(dim)) {
                *value = row[i];
            }
        }
        match self.transform {
            Transform::Values => {}
            Transform::Differences => {
                // From the last to the first: what is subtracted is still an entry of the row.
                for i in (1..dim).rev() {
                    let (before, values) = self.values[(i - 1) * step..].split_at_mut(step);
                    for (value, before) in values[..size].iter_mut().zip(before) {
                        *value -= *before;
                    }
                }
            }
            Transform::Sorted => self.sorting.sort(&mut self.values, step, size),
        }
    }

    /// Finds the patterns of `size` rows in the table, and the groups they name.
    fn place(&mut self, patterns: &Patterns<'_>, size: usize, groups: usize) -> Result<(), Error> {
        if patterns.keys.is_empty() {
            return Ok(());
        }
        let mut highest = 0;
        for row in 0..size {
            let place = patterns.find(self.keys[row]);
            let group = place.map_or(0, |place| patterns.groups[place]);
            self.places[row] = place.unwrap_or(usize::MAX);
            self.bases[row] = group as usize * self.total;
            highest = highest.max(group);
        }
        // Without groups nothing is weighed or counted by group.
        if groups > 0 && highest as usize >= groups {
            return Err(Error::invalid("groups", format!("below {groups}"), highest));
        }
        Ok(())
    }

    /// Adds the weights of the bins, column after column.
    fn add(&self, weights: &[f64], scores: &mut [f64]) {
        for (i, column) in self.columns.iter().enumerate() {
            let bins = &self.bins[i * self.step..];
            if weights.len() == self.total {
                let weights = &weights[column.range()];
                for (score, &bin) in scores.iter_mut().zip(bins) {
                    *score += weights[bin as usize];
                }
            } else {
                for ((score, &bin), base) in scores.iter_mut().zip(bins).zip(&self.bases) {
                    *score += weights[base + column.start + bin as usize];
                }
            }
        }
    }

    /// Counts the bins of `size` rows.
    fn count(&self, counts: &mut [u64], size: usize) {
        for (i, column) in self.columns.iter().enumerate() {
            let bins = &self.bins[i * self.step..i * self.step + size];
            for (&bin, base) in bins.iter().zip(&self.bases) {
                counts[base + column.start + bin as usize] += 1;
            }
        }
    }
}
