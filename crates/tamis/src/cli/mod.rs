//! Parts of the commands that `tamis-lab` doesn't share.

pub(crate) use tamis_cli::*;

pub(crate) mod compare;
pub(crate) mod fragment;
pub(crate) mod help;
pub(crate) mod judged;
pub(crate) mod library;
pub(crate) mod settings;
