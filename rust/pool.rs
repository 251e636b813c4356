//! Threads: rayon pools of our own, built when first needed and built anew in a forked child.
//!
//! A pool has a power of two of threads, so a process has at most ten, whatever it asks for. A
//! larger one serves smaller requests: of its threads only as many are given work as were asked
//! for.
//!
//! A forked child has none of its parent's threads, so a pool inherited from the parent would
//! wait for ever. The pools are therefore kept with the process id that built them, behind one
//! atomic pointer: a lock that the parent's threads take could have been held by one that does not
//! exist in the child.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

/// The most threads that may be asked for.
pub const MOST_THREADS: usize = 1024;

/// Pools of a process: 2, 4, ..., 1024 threads.
const POOLS: usize = MOST_THREADS.ilog2() as usize;

/// The pools of one process, each built once, when it is first needed.
struct Pools {
    process: u32,
    built: [OnceLock<ThreadPool>; POOLS],
    building: Mutex<()>,
}

/// Those of the process that used them last: this one, or one that it was forked from.
static LAST: AtomicPtr<Pools> = AtomicPtr::new(ptr::null_mut());

impl Pools {
    fn new() -> Self {
        let built = [const { OnceLock::new() }; POOLS];
        Self { process: std::process::id(), built, building: Mutex::new(()) }
    }

    /// Those of this process.
    ///
    /// A parent's are left as they are and never freed: their threads are gone, so nobody could
    /// wait for their end.
    fn here(last: &AtomicPtr<Self>) -> &Self {
        let found = last.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from Box::into_raw below, and what it has once
        // pointed to is never freed.
        if let Some(pools) = unsafe { found.as_ref() }
            && pools.process == std::process::id()
        {
            return pools;
        }
        let made = Box::into_raw(Box::new(Self::new()));
        match last.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it came from Box::into_raw and is never freed from here on.
            Ok(_) => unsafe { &*made },
            Err(winner) => {
                // SAFETY: it came from Box::into_raw, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread of this process has stored it since: as for `found`.
                unsafe { &*winner }
            }
        }
    }

    /// The smallest pool of at least `threads` threads, built if there is none.
    ///
    /// One that is built has a thread for each core, so that two callers do not wait for each other
    /// where there is room for both.
    fn enough(&self, threads: usize) -> Result<&ThreadPool, Error> {
        let place = |threads: usize| threads.clamp(2, MOST_THREADS).next_power_of_two().ilog2() - 1;
        let first = place(threads) as usize;
        let found = || self.built[first..].iter().find_map(OnceLock::get);
        if let Some(pool) = found() {
            return Ok(pool);
        }
        // Several first callers build one pool; the lock is this process's own.
        let _building = lock(&self.building);
        if let Some(pool) = found() {
            return Ok(pool);
        }
        let size = first.max(place(default_threads()) as usize);
        let pool = ThreadPoolBuilder::new()
            .num_threads(2 << size)
            .thread_name(|index| format!("dpcore-{index}"))
            .build()
            .map_err(|error| Error::invalid("threads", format!("fewer ({error})"), threads))?;
        Ok(self.built[size].get_or_init(|| pool))
    }
}

/// Threads used when none are asked for: the cores this process may run on.
#[must_use]
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on every item on up to `threads` threads.
///
/// Each thread adds what it finds to a total of its own, and the totals are merged at the end: a
/// message for each item would wake the caller fifty thousand times a second, which on two cores
/// cost a third of the speed. The order of items is not fixed; `merge` must not care. Once `stop`
/// is set no further item is begun.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` was set before all items were done; no pool could be built.
pub(crate) fn each<I: Send, T: Default + Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&mut T, I) + Sync,
    merge: impl Fn(&mut T, T) + Sync,
) -> Result<T, Error> {
    let workers = threads.min(items.len());
    let items = Mutex::new(items);
    let sum = Mutex::new(T::default());
    let run = || {
        let mut own = T::default();
        loop {
            let item = if stop.load(Ordering::Relaxed) { None } else { lock(&items).next() };
            match item {
                Some(item) => work(&mut own, item),
                None => break,
            }
        }
        merge(&mut lock(&sum), own);
    };
    if workers <= 1 {
        run();
    } else {
        Pools::here(&LAST).enough(workers)?.in_place_scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| run());
            }
        });
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Locks; a worker that panicked has left an iterator or a sum whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn every_item_runs_once_on_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let stop = AtomicBool::new(false);
            let work = |total: &mut (u32, u32), i| *total = (total.0 + i, total.1 + 1);
            let merge = |a: &mut (u32, u32), b: (u32, u32)| *a = (a.0 + b.0, a.1 + b.1);
            assert_eq!(each(0..1000, threads, &stop, work, merge), Ok((499_500, 1000)));
        }
    }

    fn sizes(pools: &Pools) -> Vec<usize> {
        pools.built.iter().filter_map(OnceLock::get).map(ThreadPool::current_num_threads).collect()
    }

    #[test]
    fn pools_are_powers_of_two_and_larger_ones_serve_smaller_requests() {
        let (pools, cores) = (Pools::new(), default_threads().next_power_of_two());
        for threads in 2..=60 {
            assert!(pools.enough(threads).unwrap().current_num_threads() >= threads);
        }
        let built = sizes(&pools);
        assert!(built.iter().all(|size| size.is_power_of_two()), "{built:?}");
        assert!(built.iter().sum::<usize>() < 2 * cores.max(64), "{built:?}");
        for threads in 2..=60 {
            assert!(pools.enough(threads).unwrap().current_num_threads() < 2 * threads.max(cores));
        }
        assert_eq!(sizes(&pools), built);

        let large = Pools::new();
        for threads in [60, 2, 33] {
            large.enough(threads).unwrap();
        }
        assert_eq!(sizes(&large), [cores.clamp(64, MOST_THREADS)]);
    }

    #[test]
    fn first_callers_at_once_share_one_table() {
        for _ in 0..20 {
            let (last, callers) = (AtomicPtr::new(ptr::null_mut()), Barrier::new(4));
            let call = || {
                callers.wait();
                ptr::from_ref(Pools::here(&last)) as usize
            };
            thread::scope(|scope| {
                let calls: Vec<_> = (0..4).map(|_| scope.spawn(call)).collect();
                let found: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
                assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
            });
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a rayon pool takes minutes there")]
    fn first_callers_at_once_build_one_pool() {
        for _ in 0..20 {
            let (last, callers) = (AtomicPtr::new(ptr::null_mut()), Barrier::new(16));
            let call = || {
                callers.wait();
                let pools = Pools::here(&last);
                (ptr::from_ref(pools) as usize, ptr::from_ref(pools.enough(2).unwrap()) as usize)
            };
            let found: Vec<_> = thread::scope(|scope| {
                let calls: Vec<_> = (0..16).map(|_| scope.spawn(call)).collect();
                calls.into_iter().map(|call| call.join().unwrap()).collect()
            });
            assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
            assert_eq!(sizes(Pools::here(&last)).len(), 1);
        }
    }

    #[test]
    fn a_forked_child_has_pools_of_its_own() {
        let parents = Pools { process: std::process::id() ^ 1, ..Pools::new() };
        // Held by a thread that the child does not have.
        let _building = lock(&parents.building);
        let last = AtomicPtr::new(ptr::from_ref(&parents).cast_mut());
        let own = Pools::here(&last);
        assert_eq!(own.process, std::process::id());
        assert_eq!(own.enough(2).unwrap().install(rayon::current_num_threads), sizes(own)[0]);
        assert!(ptr::eq(own, Pools::here(&last)) && sizes(&parents).is_empty());
    }

    #[test]
    fn a_stop_is_an_error() {
        let stop = AtomicBool::new(true);
        for threads in [1, 4] {
            let done = each(0..10, threads, &stop, |(), _| panic!("began an item"), |(), ()| ());
            assert_eq!(done, Err(Error::Interrupted));
        }
    }
}
