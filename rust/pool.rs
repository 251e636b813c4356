//! Threads: a rayon pool of our own, built when first needed and built anew in a forked child.
//!
//! A forked child has none of its parent's threads, so a pool inherited from the parent would
//! wait for ever. The pool is therefore kept with the process id that built it, behind one atomic
//! pointer: a lock could have been held by a thread that does not exist in the child.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

struct Kept {
    process: u32,
    threads: usize,
    pool: ThreadPool,
}

static POOL: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());

/// The most threads that may be asked for.
pub const MOST_THREADS: usize = 1024;

/// Threads used when none are asked for: the cores this process may run on.
#[must_use]
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A pool of at least `threads` threads in this process.
///
/// A pool that is too small, or a parent's, is left as it is (somebody may be using it, or its
/// threads are gone) and never freed; the new one is larger, so there are only ever a few.
fn pool(threads: usize) -> Result<&'static ThreadPool, Error> {
    let kept = POOL.load(Ordering::Acquire);
    // SAFETY: the pointer is null or came from Box::into_raw below and is never freed.
    if let Some(kept) = unsafe { kept.as_ref() }
        && kept.process == std::process::id()
        && kept.threads >= threads
    {
        return Ok(&kept.pool);
    }
    let threads = threads.max(default_threads());
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("dpcore-{index}"))
        .build()
        .map_err(|error| Error::invalid("threads", format!("fewer ({error})"), threads))?;
    let kept = Box::leak(Box::new(Kept { process: std::process::id(), threads, pool }));
    POOL.store(kept, Ordering::Release);
    Ok(&kept.pool)
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
        pool(workers)?.in_place_scope(|scope| {
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

    #[test]
    fn a_stop_is_an_error() {
        let stop = AtomicBool::new(true);
        for threads in [1, 4] {
            let done = each(0..10, threads, &stop, |(), _| panic!("began an item"), |(), ()| ());
            assert_eq!(done, Err(Error::Interrupted));
        }
    }
}
