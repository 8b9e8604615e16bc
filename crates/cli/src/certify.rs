//! `--certify DIR`: a certificate of an equivalence, as a folder of files.
//!
//! The folder is written under a temporary name beside its place and renamed, so that it is never incomplete. It must
//! not exist, or be empty: a certificate never replaces files.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tamis_certificate::{Certificate, Effort, Uncertified};
use tamis_compiler::ProofEffort;
use tamis_prover::Subject;
use tamis_report::entry::counted;
use tamis_session::path_text::PathText;

use super::Global;
use super::failure::Failure;
use super::replace::{self, create_beside};

/// Where a certificate is written.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CertifyArgs {
    /// Write a certificate of the equivalence to this new folder, for `tamis-check` and public solvers
    #[arg(long, value_name = "DIR", help_heading = "Proof")]
    certify: Option<PathBuf>,
}

impl CertifyArgs {
    /// Whether a folder is named.
    pub const fn is_given(&self) -> bool {
        self.certify.is_some()
    }

    /// Fails if the folder can't be written, before anything is proved.
    pub fn check_folder(&self) -> Result<(), Failure> {
        let Some(folder) = &self.certify else {
            return Ok(());
        };
        if folder.file_name().is_none() {
            let message = format!("--certify {}: this folder can't be new", folder.text());
            return Err(Failure::usage(message, NEW));
        }
        match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("--certify {}: the folder is not empty", folder.text());
                return Err(Failure::usage(message, NEW));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(folder, &error)),
        }
        let parent = folder.parent().filter(|parent| *parent != Path::new(""));
        match parent.filter(|parent| !parent.is_dir()) {
            Some(parent) => {
                let message = format!("cannot write to {}: it is no folder", parent.text());
                Err(Failure::environment(message))
            }
            None => Ok(()),
        }
    }

    /// Writes the certificate that two subjects are equal, if it is wanted.
    pub fn write(
        &self,
        left: &Subject<'_>,
        right: &Subject<'_>,
        effort: &ProofEffort,
        global: &Global,
    ) -> Result<(), Failure> {
        let Some(folder) = &self.certify else {
            return Ok(());
        };
        let effort = Effort {
            limits: effort.limits,
            stop: effort.stop.clone(),
        };
        let certificate = Certificate::new(left, right, &effort);
        let certificate = certificate.map_err(|error| refusal(&error))?;
        put(folder, &certificate).map_err(|error| unwritable(folder, &error))?;
        global.notice(summary(folder, &certificate).trim_end());
        Ok(())
    }
}

/// The way out for a folder that exists.
const NEW: &str = "name a new folder, or an empty one";

fn put(folder: &Path, certificate: &Certificate) -> io::Result<()> {
    let make = |path: &Path| fs::create_dir(path);
    let (temporary, ()) = create_beside(folder, make)?;
    let files = certificate.files().iter();
    let mut files = files.map(|(name, bytes)| (temporary.join(name), bytes));
    let written = files
        .try_for_each(|(path, bytes)| replace::replace_file(&path, bytes, replace::FILE))
        .and_then(|()| fs::rename(&temporary, folder));
    written.inspect_err(|_| {
        // The original error is reported instead.
        let _ = fs::remove_dir_all(&temporary);
    })
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write to {}: {error}", folder.text()))
}

fn refusal(error: &Uncertified) -> Failure {
    let message = format!("no certificate: {error}");
    match error {
        Uncertified::Variables => {
            Failure::usage(message, "bind them, for example `--set NAME=VALUE`")
        }
        Uncertified::Endian => Failure::usage(message, "choose machines of one order by --arch"),
        Uncertified::Empty => Failure::input(message),
        Uncertified::Different => Failure::usage(
            message,
            "a certificate is about every call: leave out --arch",
        ),
        Uncertified::Unproved(_) | Uncertified::TooLong => Failure::gave_up(message, None),
        Uncertified::Rejected(_) => Failure::bug(
            message,
            "please report this with both inputs; nothing was written",
        ),
    }
}

/// What the folder has, with sizes.
fn summary(folder: &Path, certificate: &Certificate) -> String {
    let mut text = format!("certificate in {}:\n", folder.text());
    for (name, bytes) in certificate.files() {
        let about = match name.as_str() {
            "table.txt" => match &certificate.cubes {
                Ok(cubes) => format!("{}, for tamis-check", counted(*cubes, "cube")),
                Err(_) => continue,
            },
            "claim.smt2" => "for z3, cvc5, bitwuzla: unsat".to_owned(),
            "claim.cnf" => "the formula of claim.lrat".to_owned(),
            "claim.lrat" => match &certificate.steps {
                Ok(steps) => format!("{}, for lrat-check", counted(*steps, "step")),
                Err(_) => continue,
            },
            _ if name.ends_with(".bpf") && name.matches('.').count() == 1 => {
                counted(bytes.len() / 8, "instruction")
            }
            _ => continue,
        };
        let _ = writeln!(text, "  {name}: {} bytes, {about}", bytes.len());
    }
    if let Err(gap) = &certificate.cubes {
        let _ = writeln!(text, "  no table.txt: {gap}");
    }
    if let Err(gap) = &certificate.steps {
        let _ = writeln!(text, "  no claim.lrat: {gap}");
    }
    text
}
