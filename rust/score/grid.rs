//! A grid of equal cells that says between which edges to search.

/// Equal cells over a range of numbers; what lies outside is in the end cells.
pub(super) struct Grid {
    low: f64,
    per_unit: f64,
    /// Edges in lower cells, by cell.
    first: Vec<u32>,
    /// Edges in the fullest cell.
    pub(super) most: usize,
}

const CELLS_PER_EDGE: usize = 4;
const MOST_CELLS: usize = 1 << 14;

impl Grid {
    /// A grid over all edges; if far ones make its cells too wide, one that leaves some out.
    pub(super) fn best(edges: &[f64]) -> Option<Self> {
        let (last, part) = (edges.len() - 1, edges.len() / 6);
        let all = Self::new(edges, 0, last);
        if all.as_ref().is_some_and(|grid| grid.most <= 2) {
            return all;
        }
        let trimmed = [(part, last), (0, last - part), (part, last - part)];
        let others = trimmed.into_iter().filter_map(|(low, high)| Self::new(edges, low, high));
        all.into_iter().chain(others).min_by_key(|grid| grid.most)
    }

    fn new(edges: &[f64], low: usize, high: usize) -> Option<Self> {
        let cells = (CELLS_PER_EDGE * edges.len()).min(MOST_CELLS);
        let (low, width) = (edges[low], edges[high] - edges[low]);
        let per_unit = cells as f64 / width;
        if !(per_unit.is_normal() && low.is_finite()) {
            return None;
        }
        let mut grid = Self { low, per_unit, first: vec![0; cells + 2], most: 0 };
        for &edge in edges {
            let cell = grid.cell(edge);
            grid.first[cell + 1] += 1;
        }
        grid.most = grid.first.iter().max().map_or(0, |&most| most as usize);
        for cell in 0..=cells {
            grid.first[cell + 1] += grid.first[cell];
        }
        Some(grid)
    }

    #[inline(always)]
    fn cell(&self, value: f64) -> usize {
        const TWO_52: f64 = 4_503_599_627_370_496.0;
        let top = (self.first.len() - 2) as f64;
        let place = (value - self.low) * self.per_unit;
        let place = if place > 0.0 { place } else { 0.0 };
        let place = if place < top { place } else { top };
        // The sum has the nearest whole number in its low bits.
        (place + TWO_52).to_bits() as u32 as usize
    }

    #[inline(always)]
    pub(super) fn first(&self, value: f64) -> u32 {
        self.first[self.cell(value)]
    }
}
