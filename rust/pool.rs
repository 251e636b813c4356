//! Threads: a rayon pool of our own, built when first needed and built anew in a forked child.
//!
//! A forked child has none of its parent's threads, so a pool inherited from the parent would
//! wait for ever. The pool is therefore kept with the process id that built it, behind one atomic
//! pointer: a lock could have been held by a thread that does not exist in the child.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// Runs `work` on every item on up to `threads` threads and folds the results.
///
/// The order in which items run is not fixed; `fold` must not care. Once `stop` is set no further
/// item is begun.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` was set before all items were done; no pool could be built.
pub(crate) fn each<I: Send, T: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(I) -> T + Sync,
    mut fold: impl FnMut(T),
) -> Result<(), Error> {
    let workers = threads.min(items.len());
    let items = Mutex::new(items);
    let take = || {
        // A worker that panicked has left the iterator whole: `next` does not panic.
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.load(Ordering::Relaxed) { None } else { items.next() }
    };
    if workers <= 1 {
        while let Some(item) = take() {
            fold(work(item));
        }
    } else {
        let (send, results) = std::sync::mpsc::channel();
        pool(workers)?.in_place_scope(|scope| {
            for _ in 0..workers {
                let (send, take, work) = (send.clone(), &take, &work);
                scope.spawn(move |_| {
                    while let Some(item) = take() {
                        // The receiver lives until the scope ends.
                        let _ = send.send(work(item));
                    }
                });
            }
            drop(send);
            results.iter().for_each(&mut fold);
        });
    }
    if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_runs_once_on_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let (mut sum, mut count) = (0, 0);
            let stop = AtomicBool::new(false);
            each(0..1000, threads, &stop, |i| i, |i| (sum, count) = (sum + i, count + 1)).unwrap();
            assert_eq!((sum, count), (499_500, 1000));
        }
    }

    #[test]
    fn a_stop_is_an_error() {
        let stop = AtomicBool::new(true);
        for threads in [1, 4] {
            let done = each(0..10, threads, &stop, |_| (), |()| panic!("began an item"));
            assert_eq!(done, Err(Error::Interrupted));
        }
    }
}
