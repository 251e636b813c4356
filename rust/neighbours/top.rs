//! The nearest of one query so far, and who may be among them.

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

/// A point that may be among the nearest: bounds on its squared distance in the units of a frame.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub low: f32,
    pub high: f32,
    pub place: u32,
}

/// All points that may be among the nearest of a query, by products.
#[derive(Default)]
pub(super) struct Sieve {
    pub kept: Vec<Candidate>,
    /// What has a `low` above is not among the nearest.
    pub bound: f32,
    limit: usize,
    /// There were too many.
    pub full: bool,
}

impl Sieve {
    /// An empty one; `bound` is above the distance of the last of the nearest.
    pub fn start(&mut self, depth: usize, bound: f32) {
        self.kept.clear();
        (self.bound, self.limit, self.full) = (bound, 2 * depth + 64, false);
    }

    /// Whether there is no room for one more.
    #[inline(always)]
    pub fn put(&mut self, candidate: Candidate) -> bool {
        self.kept.push(candidate);
        self.kept.len() >= self.limit
    }

    /// Drops what is certainly not among the nearest.
    pub fn prune(&mut self, depth: usize) {
        if self.kept.len() > depth {
            self.kept.select_nth_unstable_by(depth - 1, |a, b| a.high.total_cmp(&b.high));
            self.bound = self.bound.min(self.kept[depth - 1].high);
        }
        let bound = self.bound;
        self.kept.retain(|candidate| candidate.low <= bound);
    }

    /// Prunes; with more than `most` / 2 left the query is given up.
    #[cold]
    pub fn make_room(&mut self, depth: usize, most: usize) {
        self.prune(depth);
        self.limit = self.limit.max(2 * self.kept.len());
        if self.kept.len() > most / 2 {
            self.give_up();
        }
    }

    /// Leaves the query to another way; nothing is below its bound.
    pub fn give_up(&mut self) {
        (self.full, self.kept, self.bound) = (true, Vec::new(), f32::NEG_INFINITY);
    }
}
