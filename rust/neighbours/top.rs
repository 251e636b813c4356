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

impl Candidate {
    /// Bounds rounded outwards, by more than a rounding to f32 can be: to ask which way a number was
    /// rounded costs more than all else here, as half of the answers surprise the CPU.
    #[inline(always)]
    pub fn new(low: f64, high: f64, place: u32) -> Self {
        let room = |bound: f64| bound.abs() * 2.0_f64.powi(-23) + f64::from(f32::MIN_POSITIVE);
        Self { low: (low - room(low)) as f32, high: (high + room(high)) as f32, place }
    }
}

/// All points that may be among the nearest of a query, by products.
#[derive(Default)]
pub(super) struct Sieve {
    pub kept: Vec<Candidate>,
    /// Products in bytes within the bound, with the numbers of their points: not yet candidates.
    pub raw: Vec<(i32, u32)>,
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
        self.raw.clear();
        (self.bound, self.limit, self.full) = (bound, 2 * depth + 64, false);
    }

    /// Whether there is no room for one more.
    #[inline(always)]
    pub fn put(&mut self, candidate: Candidate) -> bool {
        self.kept.push(candidate);
        self.kept.len() >= self.limit
    }

    /// As `put`, for what is not yet a candidate.
    #[inline(always)]
    pub fn put_raw(&mut self, product: i32, point: u32) -> bool {
        self.raw.push((product, point));
        self.kept.len() + self.raw.len() >= self.limit
    }

    /// Drops what is certainly not among the nearest.
    pub fn prune(&mut self, depth: usize, keys: &mut Vec<i32>) {
        if self.kept.len() > depth {
            keys.clear();
            keys.extend(self.kept.iter().map(|candidate| key(candidate.high)));
            let last = key_of(*keys.select_nth_unstable(depth - 1).1);
            self.bound = if last < self.bound { last } else { self.bound };
        }
        self.drop_beyond(0);
    }

    /// Drops what is beyond the bound, the first `sure` left out.
    pub fn drop_beyond(&mut self, sure: usize) {
        // Not `retain`, which guesses.
        let mut size = sure;
        for i in sure..self.kept.len() {
            let candidate = self.kept[i];
            self.kept[size] = candidate;
            size += usize::from(candidate.low <= self.bound);
        }
        self.kept.truncate(size);
    }

    /// Prunes; with more than `most` / 2 left the query is given up.
    #[cold]
    pub fn make_room(&mut self, depth: usize, most: usize, keys: &mut Vec<i32>) {
        self.prune(depth, keys);
        self.limit = self.limit.max(2 * self.kept.len());
        if self.kept.len() > most / 2 {
            self.give_up();
        }
    }

    /// Leaves the query to another way; nothing is below NaN.
    pub fn give_up(&mut self) {
        (self.full, self.bound) = (true, f32::NAN);
        (self.kept, self.raw) = (Vec::new(), Vec::new());
    }
}

/// A whole number in the order of `f32::total_cmp`.
fn key(value: f32) -> i32 {
    let bits = value.to_bits().cast_signed();
    bits ^ (bits >> 31 & i32::MAX)
}

/// The number of a key.
fn key_of(key: i32) -> f32 {
    f32::from_bits((key ^ (key >> 31 & i32::MAX)).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve(bounds: &[(f32, f32)]) -> Sieve {
        let mut sieve = Sieve::default();
        sieve.start(2, f32::INFINITY);
        for (place, &(low, high)) in (0..).zip(bounds) {
            sieve.put(Candidate { low, high, place });
        }
        sieve
    }

    fn left(sieve: &Sieve) -> Vec<u32> {
        sieve.kept.iter().map(|candidate| candidate.place).collect()
    }

    #[test]
    fn what_may_be_as_near_as_the_last_stays() {
        let next = 3.0_f32.next_up();
        let all = [(1.0, 5.0), (3.0, 9.0), (next, 9.0), (-2.0, -1.0), (2.0, 3.0), (0.0, 4.0)];
        let mut sieve = sieve(&all);
        sieve.prune(2, &mut Vec::new());
        assert_eq!((left(&sieve), sieve.bound), (vec![0, 1, 3, 4, 5], 3.0));
        // A bound that is known from elsewhere is kept, and those in front are not asked.
        sieve.bound = 1.0;
        sieve.prune(2, &mut Vec::new());
        assert_eq!(left(&sieve), [0, 3, 5]);
        sieve.bound = 0.0;
        sieve.drop_beyond(1);
        assert_eq!(left(&sieve), [0, 3, 5]);
    }

    #[test]
    fn a_query_that_is_given_up_takes_no_more() {
        let mut sieve = sieve(&[(1.0, 5.0), (3.0, 9.0)]);
        sieve.give_up();
        assert!(sieve.full && sieve.bound.is_nan() && sieve.kept.is_empty());
    }

    #[test]
    fn candidates_are_bounded_outwards() {
        for value in [1.0 / 3.0, -2.0 / 3.0, 1e30 / 7.0, 1e-50, -1e-42, 0.0] {
            let Candidate { low, high, .. } = Candidate::new(value, value, 0);
            assert!(f64::from(low) <= value && value <= f64::from(high));
            assert!(f64::from(high) - f64::from(low) <= value.abs() * 1e-6 + 1e-37);
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_numbers() {
        let all = [f32::NEG_INFINITY, -2.0, -1e-45, -0.0, 0.0, 1e-45, 2.0, f32::INFINITY];
        assert!(all.map(key).is_sorted());
        assert_eq!(all.map(|value| key_of(key(value)).to_bits()), all.map(f32::to_bits));
    }
}
