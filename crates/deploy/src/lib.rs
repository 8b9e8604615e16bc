//! Filters put into place, and checked there: services of systemd, containers, running processes.
//!
//! | module | function |
//! |---|---|
//! | [`harden`] | one filter in place of the filters that systemd makes for a service |
//! | [`oci`] | filters in the configuration of a container |
//! | [`advisories`] | known weaknesses of the filters of running processes |
//! | [`audit`] | the filters of running processes, compared with a policy |
//! | [`denied`] | denied calls, explained, with the smallest change of the policy that allows them |
//! | [`owner`] | the unit, container and pod of a process |
//! | [`systemd`] | the installed release of systemd |
//! | [`root`] | a file system below a root, for images |
//! | [`tasks`] | tasks of this machine |
//!
//! The crate reads units, images and `/proc`, and reads filters of processes. It writes nothing, but [`harden::undo`]
//! removes files. Options, output and exit codes are the command's.
#![forbid(unsafe_code)]

pub mod advisories;
pub mod audit;
pub mod denied;
pub mod harden;
pub mod oci;
pub mod owner;
pub mod root;
pub mod systemd;
pub mod tasks;

use tamis_bpf::{Program, Stack};
use tamis_compiler::CompileOptions;
use tamis_optimize::{Split, optimise};
use tamis_session::{Cause, Error};

/// The filters of one task as one program; `None` if it would be too long.
fn merged(stack: &Stack, options: &CompileOptions) -> Result<Option<Program>, Error> {
    if let [one] = stack.programs() {
        return Ok(Some(one.clone()));
    }
    let optimised = optimise(stack, options, Split::Never).map_err(|error| Error::Message {
        message: error.to_string(),
        hint: Some("please report this with the input".to_owned()),
        cause: Cause::Bug,
    })?;
    Ok(match optimised.programs() {
        [one] => Some(one.clone()),
        _ => None,
    })
}
