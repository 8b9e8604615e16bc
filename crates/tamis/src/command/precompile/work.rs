//! The environment for compiling a matrix: files, and all processors.

use std::panic;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

use tamis_policy::loader::Loader;
use tamis_session::files::{self, FileLoader};
use tamis_session::matrix::Environment;
use tamis_session::{Error, Input};

/// The size of the stack, as that of the main thread.
const STACK_BYTES: usize = 8 << 20;

/// This machine.
pub(super) struct Machine;

impl Environment for Machine {
    fn read(&self, path: &str) -> Result<Input, Error> {
        files::read(path)
    }

    fn loader(&self, folders: &[PathBuf]) -> Box<dyn Loader> {
        Box::new(FileLoader::new(folders))
    }

    fn for_each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        in_parallel(items, work)
    }
}

/// Applies a function to each item, on all processors.
///
/// # Panics
/// If the function panics.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, work(item)));
        }
        done
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let spawned = (1..workers.min(items.len())).filter_map(|_| {
            // If no thread can be created, this one processes the items.
            Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, take)
                .ok()
        });
        let spawned: Vec<_> = spawned.collect();
        let mut all = take();
        for worker in spawned {
            match worker.join() {
                Ok(done) => all.extend(done),
                Err(panic) => panic::resume_unwind(panic),
            }
        }
        all
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(
            in_parallel(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        assert!(in_parallel(&[] as &[u8], |item| *item).is_empty());
    }
}
