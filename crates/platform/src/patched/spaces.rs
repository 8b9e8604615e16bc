//! The address space of each task of a guest, and its contents.

use std::collections::HashMap;

use tamis_kernel::memory;

/// The address spaces of a guest with our mappings, by the tasks that have them.
#[derive(Debug)]
pub(super) struct Spaces<S> {
    spaces: HashMap<usize, S>,
    made: usize,
    /// The space of each task that has one of these.
    tasks: HashMap<i32, usize>,
}

/// The address space of a new task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inheritance {
    /// The space of its creator.
    Same,
    /// A copy of that space.
    Copy,
}

/// The address space that a task has left.
#[derive(Debug)]
pub(super) enum Departure<'a, S> {
    /// It had no contents.
    Nothing,
    /// The task was the last one in it.
    Gone,
    /// Other tasks still have it.
    Others(&'a mut S),
}

impl<S> Default for Spaces<S> {
    fn default() -> Spaces<S> {
        Spaces {
            spaces: HashMap::new(),
            made: 0,
            tasks: HashMap::new(),
        }
    }
}

impl<S> Spaces<S> {
    /// The space of a task.
    pub(super) fn space(&self, tid: i32) -> Option<&S> {
        self.spaces.get(self.tasks.get(&tid)?)
    }

    /// The same, to be changed.
    pub(super) fn of_mut(&mut self, tid: i32) -> Option<&mut S> {
        self.spaces.get_mut(self.tasks.get(&tid)?)
    }

    /// Whether two tasks have the same space.
    pub(super) fn are_same(&self, one: i32, other: i32) -> bool {
        let one = self.tasks.get(&one);
        one.is_some() && one == self.tasks.get(&other)
    }

    /// Gives a task a space of its own.
    pub(super) fn add(&mut self, tid: i32, space: S) {
        self.made += 1;
        self.spaces.insert(self.made, space);
        self.tasks.insert(tid, self.made);
    }

    /// Adds other tasks to the space of this one.
    pub(super) fn join(&mut self, tid: i32, others: impl IntoIterator<Item = i32>) {
        if let Some(id) = self.tasks.get(&tid).copied() {
            self.tasks
                .extend(others.into_iter().map(|other| (other, id)));
        }
    }

    /// Handles the creation of a task, which is stopped. `None` if it has none of these spaces, or the kernel doesn't
    /// report shared memory.
    pub(super) fn created(
        &mut self,
        tid: i32,
        creator: i32,
        copy: impl FnOnce(&S) -> S,
    ) -> Option<Inheritance> {
        let space = self.space(creator)?;
        if memory::is_shared(tid, creator).ok()? {
            self.join(creator, [tid]);
            return Some(Inheritance::Same);
        }
        let copy = copy(space);
        self.add(tid, copy);
        Some(Inheritance::Copy)
    }

    /// Handles a task that has ended, or has executed another program.
    pub(super) fn left(&mut self, tid: i32) -> Departure<'_, S> {
        let Some(id) = self.tasks.remove(&tid) else {
            return Departure::Nothing;
        };
        if !self.tasks.values().any(|other| *other == id) {
            self.spaces.remove(&id);
            return Departure::Gone;
        }
        self.spaces
            .get_mut(&id)
            .map_or(Departure::Nothing, Departure::Others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_kernel::Errno;

    #[test]
    fn a_space_goes_with_its_last_task() {
        const OWN: i32 = 0;
        let own = std::process::id() as i32;
        let mut spaces = Spaces::default();
        assert!(matches!(spaces.left(own), Departure::Nothing));
        spaces.add(OWN, 'a');
        spaces.join(OWN, [own, 1]);
        spaces.add(2, 'b');
        assert!(spaces.are_same(1, own) && !spaces.are_same(1, 2) && !spaces.are_same(3, 4));
        // A task shares its memory with itself, where the kernel compares.
        let created = spaces.created(own, own, |_| 'c');
        let is_refused = matches!(
            memory::is_shared(own, own),
            Err(Errno(libc::EPERM | libc::ENOSYS))
        );
        assert_eq!(created, (!is_refused).then_some(Inheritance::Same));
        assert!(matches!(spaces.left(OWN), Departure::Others('a')));
        assert!(matches!(spaces.left(own), Departure::Others('a')));
        assert!(matches!(spaces.left(1), Departure::Gone));
        assert_eq!((spaces.space(1), spaces.space(2)), (None, Some(&'b')));
    }
}
