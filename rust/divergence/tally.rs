//! Pairs of counts, gathered.

/// n, j and whether the cell is one of atoms that the other set does not have.
pub(super) fn key(n: u64, j: u64, unseen: bool) -> u64 {
    n << 32 | j << 1 | u64::from(unseen)
}

/// Pairs of counts and how many rows have them: an open-addressing table, sorted at the end.
#[derive(Default)]
pub(super) struct Tally {
    slots: Vec<(u64, u64)>,
    used: usize,
}

/// Whether a key is one of atoms that the other set does not have.
pub(super) fn is_unseen(key: u64) -> bool {
    key & 1 == 1
}

/// n and j of a key.
pub(super) fn counts(key: u64) -> (u64, u64) {
    (key >> 32, (key & 0xffff_ffff) >> 1)
}

impl Tally {
    /// `rows` more rows have the counts of `key`.
    #[inline]
    pub(super) fn add(&mut self, key: u64, rows: u64) {
        if rows == 0 {
            return;
        }
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        self.put(key, rows);
    }

    #[inline]
    fn put(&mut self, key: u64, rows: u64) {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the top bits of the product (Knuth 1998, volume 3, section 6.4).
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut place = hash as usize & mask;
        loop {
            let (found, count) = &mut self.slots[place];
            // A slot in use has at least one row.
            if *count == 0 {
                (*found, *count) = (key, rows);
                self.used += 1;
                return;
            }
            if *found == key {
                *count += rows;
                return;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); (self.slots.len() * 2).max(64)];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for (key, rows) in old {
            if rows > 0 {
                self.put(key, rows);
            }
        }
    }

    /// All that `other` has, too.
    pub(super) fn merge(&mut self, other: &Self) {
        for &(key, rows) in &other.slots {
            self.add(key, rows);
        }
    }

    /// The cells in order of their keys; the table is empty again.
    pub(super) fn take(&mut self) -> Vec<(u64, f64)> {
        let used = self.slots.iter().filter(|(_, rows)| *rows > 0);
        let mut cells: Vec<_> = used.map(|&(key, rows)| (key, rows as f64)).collect();
        cells.sort_unstable_by_key(|&(key, _)| key);
        self.slots.fill((0, 0));
        self.used = 0;
        cells
    }
}

/// Sorts cells and adds those of one key.
pub(super) fn gather(cells: &mut Vec<(u64, f64)>) {
    // Stable, so that weights are added in the order given.
    cells.sort_by_key(|&(key, _)| key);
    cells.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
}

/// The cells of one data set, sorted by key without repeats, and the sizes of its two sets.
pub(super) struct Counted {
    pub(super) cells: Vec<(u64, f64)>,
    pub(super) own: u64,
    pub(super) other: u64,
}
