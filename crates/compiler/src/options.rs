//! What a compilation may be told.

use crate::passes::registry::Selection;

/// How to compile. The default is what a user wants who says nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which passes run; by default all.
    pub passes: Selection,
    /// How many changes passes may apply, all together; by default any number.
    pub fuel: Option<u64>,
    /// Whether the meaning is proved after every stage and every pass that changed something, and not
    /// only at the end; the error then says which one broke it.
    pub verify_each: bool,
}
