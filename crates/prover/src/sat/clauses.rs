//! Literals, and lists of clauses.

/// A variable or its negation: twice the number of the variable, plus one if negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Literal(u32);

impl Literal {
    /// The literal that a variable is true.
    pub(crate) const fn positive(variable: u32) -> Literal {
        Literal(variable << 1)
    }

    pub(crate) const fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }

    /// The literal, negated if the condition holds.
    pub(crate) const fn negated_if(self, condition: bool) -> Literal {
        Literal(self.0 ^ condition as u32)
    }

    pub(super) const fn variable(self) -> usize {
        self.0 as usize >> 1
    }

    /// The place of the literal in tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The number in DIMACS: that of the variable, from 1, negative if negated.
    pub(super) const fn dimacs(self) -> i32 {
        let number = (self.0 >> 1) as i32 + 1;
        if self.0 & 1 == 1 { -number } else { number }
    }
}

/// A list of clauses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clauses {
    literals: Vec<Literal>,
    /// The end of each clause in the list of literals.
    ends: Vec<u32>,
}

impl Clauses {
    pub(crate) fn push(&mut self, clause: &[Literal]) {
        self.literals.extend_from_slice(clause);
        self.ends.push(self.literals.len() as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: usize) -> &[Literal] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.literals[start as usize..self.ends[number] as usize]
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut [Literal] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &mut self.literals[start as usize..self.ends[number] as usize]
    }
}
