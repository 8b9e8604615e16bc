//! Time limits of tests on machines that are slower than usual.
//!
//! A limit is chosen for a processor of these years with some load. On an emulated one the same work takes twenty to a
//! hundred times as long. `TAMIS_SLOWNESS`, a whole number, multiplies all limits that pass through [`scaled`];
//! `cargo xtask kernels` measures it in each machine. What a test demands doesn't change with it.

use std::env;
use std::time::Duration;

/// A time limit on this machine, given that on a usual one.
///
/// # Panics
/// If `TAMIS_SLOWNESS` is set and not a whole number from 1 on.
pub fn scaled(limit: Duration) -> Duration {
    limit * factor(env::var("TAMIS_SLOWNESS").ok().as_deref())
}

fn factor(slowness: Option<&str>) -> u32 {
    let Some(text) = slowness else {
        return 1;
    };
    match text.parse() {
        Ok(factor @ 1..) => factor,
        _ => panic!("TAMIS_SLOWNESS is `{text}`; write a whole number from 1 on, or leave it out"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_multiplied_and_never_removed() {
        assert_eq!(factor(None), 1);
        assert_eq!(factor(Some("40")), 40);
        for text in ["", "0", "-1", "1.5", "fast"] {
            assert!(
                std::panic::catch_unwind(|| factor(Some(text))).is_err(),
                "{text}"
            );
        }
    }
}
