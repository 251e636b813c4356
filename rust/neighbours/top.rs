//! The nearest of one query so far.

/// The nearest so far, by f64.
pub(super) struct Top {
    pub kept: Vec<(f64, u32)>,
    pub bound: f64,
    pub depth: usize,
    pub limit: usize,
}

impl Top {
    pub fn new(depth: usize) -> Self {
        Self { kept: Vec::new(), bound: f64::INFINITY, depth, limit: 2 * depth + 64 }
    }

    /// Drops what is beyond the tie shell of the last.
    pub fn prune(&mut self) {
        if self.kept.len() > self.depth {
            self.kept.select_nth_unstable_by(self.depth - 1, |a, b| a.0.total_cmp(&b.0));
            self.bound = self.kept[self.depth - 1].0;
            let bound = self.bound;
            self.kept.retain(|entry| entry.0.total_cmp(&bound).is_le());
        }
        self.limit = self.limit.max(2 * self.kept.len());
    }
}
