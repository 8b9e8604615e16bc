//! The order of decisions: variables by their activity in recent conflicts.

/// The growth of the increment after each conflict: the inverse of the decay of all activities.
const GROWTH: f64 = 1.0 / 0.95;
/// The activity from which on all activities are scaled down.
const MAX_ACTIVITY: f64 = 1e100;

/// A heap of variables, the most active first; of equal ones the smallest number.
pub(super) struct Order {
    heap: Vec<u32>,
    /// The place of each variable in the heap.
    places: Vec<Option<u32>>,
    activity: Vec<f64>,
    increment: f64,
}

impl Order {
    /// All variables below a number.
    pub(super) fn new(variables: u32) -> Order {
        Order {
            heap: (0..variables).collect(),
            places: (0..variables).map(Some).collect(),
            activity: vec![0.0; variables as usize],
            increment: 1.0,
        }
    }

    /// Takes the most active variable.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        self.places[first as usize] = None;
        if last != first {
            self.put(0, last);
            self.sink(0);
        }
        Some(first)
    }

    /// Puts a variable back, unless it is there.
    pub(super) fn insert(&mut self, variable: u32) {
        if self.places[variable as usize].is_none() {
            self.heap.push(variable);
            self.put(self.heap.len() - 1, variable);
            self.rise(self.heap.len() - 1);
        }
    }

    /// Notes that a variable took part in a conflict.
    pub(super) fn bump(&mut self, variable: u32) {
        let activity = &mut self.activity[variable as usize];
        *activity += self.increment;
        if *activity > MAX_ACTIVITY {
            for activity in &mut self.activity {
                *activity /= MAX_ACTIVITY;
            }
            self.increment /= MAX_ACTIVITY;
        }
        if let Some(place) = self.places[variable as usize] {
            self.rise(place as usize);
        }
    }

    /// Lowers the activity of all variables, relative to those of later conflicts.
    pub(super) fn decay(&mut self) {
        self.increment *= GROWTH;
    }

    fn put(&mut self, place: usize, variable: u32) {
        self.heap[place] = variable;
        self.places[variable as usize] = Some(place as u32);
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let [of_a, of_b] = [a, b].map(|variable| self.activity[variable as usize]);
        of_a > of_b || of_a == of_b && a < b
    }

    fn rise(&mut self, mut place: usize) {
        let variable = self.heap[place];
        while place > 0 && self.is_before(variable, self.heap[(place - 1) / 2]) {
            self.put(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        self.put(place, variable);
    }

    fn sink(&mut self, mut place: usize) {
        let variable = self.heap[place];
        loop {
            let mut child = 2 * place + 1;
            let is_second = |child: usize| self.is_before(self.heap[child + 1], self.heap[child]);
            if child + 1 < self.heap.len() && is_second(child) {
                child += 1;
            }
            if child >= self.heap.len() || !self.is_before(self.heap[child], variable) {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, variable);
    }
}
