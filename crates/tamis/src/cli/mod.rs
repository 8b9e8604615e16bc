//! Parts of this program's commands, beside those that it shares with the laboratory's program (`tamis_cli`).

pub(crate) use tamis_cli::*;

pub(crate) mod compare;
pub(crate) mod denials;
pub(crate) mod fragment;
pub(crate) mod help;
pub(crate) mod judged;
pub(crate) mod library;
pub(crate) mod proc;
pub(crate) mod settings;
