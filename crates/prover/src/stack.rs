//! The meaning of a stack: several filters on one task.
//!
//! The kernel runs the filters from the newest to the oldest and keeps a return value if its action,
//! as a signed number, is smaller than that of the value kept so far; it starts with ALLOW
//! (`seccomp_run_filters` in `kernel/seccomp.c`).

use std::collections::BTreeMap;

use tamis_abi::Action;

use crate::diagram::{LimitReached, Node, View};
use crate::space::{Function, Space};

/// The upper half of a return value, which holds the action.
const ACTION_MASK: u32 = 0xffff_0000;

impl Space {
    /// What the kernel makes of a stack of filters, given from the oldest to the newest.
    ///
    /// # Errors
    /// If the space is full.
    pub fn stack(&mut self, oldest_first: &[Function]) -> Result<Function, LimitReached> {
        let mut kept = self.diagram.leaf(Action::ALLOW.ret())?;
        for filter in oldest_first.iter().rev() {
            kept = self.stricter(kept, filter.0, &mut BTreeMap::new())?;
        }
        Ok(Function(kept))
    }

    /// Pointwise: the value kept, or the older filter's if its action comes first.
    fn stricter(
        &mut self,
        kept: Node,
        older: Node,
        known: &mut BTreeMap<(Node, Node), Node>,
    ) -> Result<Node, LimitReached> {
        if let Some(result) = known.get(&(kept, older)) {
            return Ok(*result);
        }
        let variable = match (self.diagram.view(kept), self.diagram.view(older)) {
            (View::Leaf(kept_value), View::Leaf(older_value)) => {
                let precedence = |ret: u32| (ret & ACTION_MASK).cast_signed();
                let replaces = precedence(older_value) < precedence(kept_value);
                return Ok(if replaces { older } else { kept });
            }
            (View::Branch { variable, .. }, View::Leaf(_))
            | (View::Leaf(_), View::Branch { variable, .. }) => variable,
            (View::Branch { variable: a, .. }, View::Branch { variable: b, .. }) => a.min(b),
        };
        let (kept_low, kept_high) = self.diagram.cofactors(kept, variable);
        let (older_low, older_high) = self.diagram.cofactors(older, variable);
        let low = self.stricter(kept_low, older_low, known)?;
        let high = self.stricter(kept_high, older_high, known)?;
        let result = self.diagram.branch(variable, low, high)?;
        known.insert((kept, older), result);
        Ok(result)
    }
}
