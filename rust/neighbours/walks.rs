//! Searches of a tree for a block of queries.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::distance::Coordinate;
use super::lists::{List, Shells};
use super::search::Search;
use super::top::Top;
use super::tree::{GROUP, Tree, wide};
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Runs `$work` with the constant `$D` equal to the number of coordinates.
macro_rules! by_dim {
    ($dim:expr, $D:ident => $work:expr) => {
        by_dim!($dim, $D => $work, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    ($dim:expr, $D:ident => $work:expr, $($number:literal)*) => {
        match $dim {
            $($number => {
                const $D: usize = $number;
                $work
            })*
            _ => unreachable!("no tree has that many coordinates"),
        }
    };
}

impl Tree {
    /// Adds to `tops` what may be among the nearest of the queries.
    pub fn nearest<T: Coordinate>(
        &self,
        search: &Search<'_, T>,
        queries: Range<usize>,
        tops: &mut [Top],
        (cpu, stop): (Cpu, &AtomicBool),
    ) {
        let rows = wide(queries.len(), |i| search.query(queries.start + i));
        by_dim!(self.dim, D => {
            let queries = rows.as_chunks::<D>().0;
            dispatch(cpu, Near { tree: self, queries, tops, stop });
        });
    }

    /// Ranks the points for all lists; points within the first shell stay in `whole` nodes.
    pub fn rank<T: Coordinate>(
        &self,
        search: &Search<'_, T>,
        (shells, cap): (Shells<'_>, usize),
        lists: &mut [List],
        (cpu, stop): (Cpu, &AtomicBool),
    ) {
        let rows = wide(lists.len(), |i| search.query(lists[i].query));
        by_dim!(self.dim, D => {
            let queries = rows.as_chunks::<D>().0;
            dispatch(cpu, Rank { tree: self, queries, lists, shells, cap, stop });
        });
    }
}

/// Adds to `tops` what may be among the nearest of the queries.
pub(super) struct Near<'a, const D: usize> {
    pub tree: &'a Tree,
    pub queries: &'a [[f64; D]],
    pub tops: &'a mut [Top],
    pub stop: &'a AtomicBool,
}

impl<const D: usize> Kernel for Near<'_, D> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { tree, queries, tops, stop } = self;
        // Nodes left aside, each with its lower bound.
        let mut aside: Vec<(f64, usize)> = Vec::new();
        for (query, top) in queries.iter().zip(tops) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut enough = top.depth;
            aside.push((tree.lower(1, query), 1));
            while let Some((mut lower, mut node)) = aside.pop() {
                while node < tree.leaves && lower <= top.bound {
                    let [left, right] = [2 * node, 2 * node + 1].map(|i| (tree.lower(i, query), i));
                    let (near, far) = if left.0 <= right.0 { (left, right) } else { (right, left) };
                    if far.0 <= top.bound {
                        aside.push(far);
                    }
                    (lower, node) = near;
                }
                if lower > top.bound {
                    continue;
                }
                tree.scan(node, query, |values, places| {
                    let bound = top.bound;
                    let mut near = false;
                    for &value in values {
                        near |= value <= bound;
                    }
                    if !near {
                        return;
                    }
                    let pairs = values.iter().zip(places).filter(|&(&value, _)| value <= bound);
                    top.kept.extend(pairs.map(|(&value, &place)| (value, place)));
                });
                if top.kept.len() > enough {
                    top.prune();
                    enough = top.kept.len() + (top.kept.len() / 4).max(GROUP);
                }
            }
        }
    }
}

/// Ranks the points for all lists; what is within the first shell may stay in `whole` nodes.
pub(super) struct Rank<'a, const D: usize> {
    pub tree: &'a Tree,
    pub queries: &'a [[f64; D]],
    pub lists: &'a mut [List],
    pub shells: Shells<'a>,
    pub cap: usize,
    pub stop: &'a AtomicBool,
}

impl<const D: usize> Kernel for Rank<'_, D> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { tree, queries, lists, shells, cap, stop } = self;
        let mut ahead = Vec::new();
        for (query, list) in queries.iter().zip(lists) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let shells = shells.of(list.query);
            let (Some(&first), Some(&end)) = (shells.first(), shells.last()) else { continue };
            if !list.outside && mostly_within(tree, query, first, &mut ahead) {
                list.start(list.query, true);
            }
            ahead.push(1);
            while let Some(node) = ahead.pop() {
                let lower = tree.lower(node, query);
                // Of a list that is too long already, only the first shell matters: it may turn out
                // that the outside is to be listed.
                let full = list.listed.len() > cap;
                if full && list.outside {
                    ahead.clear();
                    break;
                }
                let reach = if full { first } else { end };
                if lower <= first && tree.upper(node, query) <= first {
                    if !list.outside {
                        list.counts[0] += tree.range(node).len();
                        list.whole.push(node);
                    }
                } else if lower > reach {
                    if list.outside {
                        let places = tree.places(node);
                        places.for_each(|place| list.put(shells.len(), place, shells.len(), cap));
                    }
                } else if node < tree.leaves {
                    ahead.extend([2 * node + 1, 2 * node]);
                } else {
                    tree.scan(node, query, |values, places| {
                        for (&value, &place) in values.iter().zip(places) {
                            if value <= reach || (list.outside && value > reach) {
                                let rank = match value {
                                    _ if value <= first => 0,
                                    _ if value > end => shells.len(),
                                    _ => shells.partition_point(|&radius| radius < value),
                                };
                                list.put(rank, place, shells.len(), cap);
                            }
                        }
                    });
                }
            }
        }
    }
}

/// Whether nodes are enough to know that a ball holds more than half of the points.
#[inline(always)]
fn mostly_within<const D: usize>(
    tree: &Tree,
    query: &[f64; D],
    radius: f64,
    ahead: &mut Vec<usize>,
) -> bool {
    let (half, mut certain, mut excluded) = (tree.range(1).len() / 2, 0, 0);
    ahead.push(1);
    while let Some(node) = ahead.pop() {
        if tree.lower(node, query) > radius {
            excluded += tree.range(node).len();
        } else if tree.upper(node, query) <= radius {
            certain += tree.range(node).len();
        } else if node < tree.leaves {
            ahead.extend([2 * node + 1, 2 * node]);
        }
        if certain > half || excluded > half {
            ahead.clear();
        }
    }
    certain > half
}

/// Sorts distinct places: by marks, one for every point, where that is less work.
pub(super) fn ascend(places: &mut [u32], points: usize, marks: &mut Vec<u64>) {
    if places.len() < 32 + points / 256 {
        return places.sort_unstable();
    }
    marks.clear();
    marks.resize(points.div_ceil(64), 0);
    for &place in &*places {
        marks[place as usize / 64] |= 1 << (place % 64);
    }
    let mut rest = places.iter_mut();
    for (word, &mark) in marks.iter().enumerate() {
        let mut mark = mark;
        while mark != 0 {
            if let Some(place) = rest.next() {
                *place = word as u32 * 64 + mark.trailing_zeros();
            }
            mark &= mark - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{Method, Sets};
    use super::*;

    /// [`mostly_within`] of points on a line, seen from 0.
    fn mostly(points: &[f64], radius: f64) -> bool {
        let all: Vec<i64> = (0..points.len() as i64).collect();
        let sets = Sets::new(points, &[], 1).unwrap();
        let search = Search::new(sets, &all, &all).unwrap().by(Method::Tree);
        let tree = Tree::of(&search, 1, &AtomicBool::new(false)).unwrap();
        mostly_within(&tree, &[0.0], radius * radius, &mut Vec::new())
    }

    #[test]
    fn nodes_tell_whether_a_ball_holds_more_than_half() {
        // Four leaves of 64.
        let points: Vec<f64> = (0..256).map(f64::from).collect();
        for (radius, expected) in [
            (10.0, false),
            (63.0, false),
            (127.0, false),
            (190.0, false),
            (191.0, true),
            (255.0, true),
        ] {
            assert_eq!(mostly(&points, radius), expected, "{radius}");
        }
        assert!(mostly(&[5.0; 256], 5.0));
        assert!(!mostly(&[5.0; 256], 5.0_f64.next_down()));
    }
    #[test]
    fn a_search_keeps_few_points_on_its_way() {
        // From the far end on: every leaf is nearer than the one before.
        let points: Vec<f64> = (0..4096).map(f64::from).collect();
        let all: Vec<i64> = (0..4096).collect();
        let sets = Sets::new(&points, &[], 1).unwrap();
        let search = Search::new(sets, &all, &all).unwrap().by(Method::Tree);
        let never = AtomicBool::new(false);
        let tree = Tree::of(&search, 5, &never).unwrap();
        for cpu in Cpu::present() {
            let mut tops = vec![Top::new(5), Top::new(5)];
            tree.nearest(&search, 2000..2002, &mut tops, (cpu, &never));
            for top in tops {
                assert!((5..64).contains(&top.kept.len()), "{}", top.kept.len());
                assert!(top.bound <= 9.0);
            }
        }
    }
    #[test]
    fn nodes_within_the_first_shell_are_not_opened() {
        let points: Vec<f64> = (0..256).map(f64::from).collect();
        let all: Vec<i64> = (0..256).collect();
        let sets = Sets::new(&points, &[], 1).unwrap();
        let search = Search::new(sets, &all[..1], &all).unwrap().by(Method::Tree);
        let never = AtomicBool::new(false);
        let tree = Tree::of(&search, 1, &never).unwrap();
        let radii = [127.0_f64.powi(2), 130.0_f64.powi(2)];
        let shells = Shells::new(&[0, 2], &radii, 1).unwrap();
        let mut list = List::default();
        for outside in [false, true] {
            list.start(0, outside);
            let lists = std::slice::from_mut(&mut list);
            tree.rank(&search, (shells, usize::MAX), lists, (Cpu::Baseline, &never));
            list.listed.sort_unstable();
            let between = [(1, 128), (1, 129), (1, 130)];
            if outside {
                let beyond: Vec<(u32, u32)> = (131..256).map(|place| (2, place)).collect();
                assert_eq!((list.whole.len(), list.counts), (0, [0, 3, 125]));
                assert_eq!((&list.listed[..3], &list.listed[3..]), (&between[..], &beyond[..]));
            } else {
                assert_eq!((&list.whole[..], list.counts), (&[2][..], [128, 3, 0]));
                assert_eq!(list.listed, between);
            }
        }
    }
}
