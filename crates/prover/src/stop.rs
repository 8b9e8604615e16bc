//! How a caller ends a search that takes it too long.
//!
//! The prover reads no clock: its own limits count work, so that its answers are the same on every
//! machine. A caller that has a deadline gives a question, which is asked every few thousand steps.

use std::fmt;
use std::sync::Arc;

use crate::diagram::LimitReached;

/// Whether the caller has had enough. By default never.
#[derive(Clone, Default)]
pub struct Stop(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Stop {
    /// Ends the search some milliseconds after this is true.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tamis_prover::{LimitReached, Limits, Space, Stop};
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let space = Space::stoppable(Limits::default(), Stop::when(move || Instant::now() > deadline));
    /// ```
    pub fn when(is_enough: impl Fn() -> bool + Send + Sync + 'static) -> Stop {
        Stop(Some(Arc::new(is_enough)))
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        self.0.as_ref().is_some_and(|is_enough| is_enough())
    }

    /// An error if the caller has had enough.
    pub(crate) fn check(&self) -> Result<(), LimitReached> {
        if self.is_asked_for() {
            return Err(LimitReached::Stopped);
        }
        Ok(())
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Stop::when(..)"
        } else {
            "Stop::default()"
        })
    }
}
