//! `tamis man`: manual pages, for packages.
//!
//! Each subcommand has a page, made from its `--help`. The end of a help contains examples, remarks and exit codes,
//! which are sections of a manual.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::output::write_file;
use crate::cli::replace::{FOLDER, make_folder};
use crate::cli::{Failure, Global, exit};
use tamis_session::path_text::PathText;

/// Write the manual pages of all subcommands
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder to write them to, which is made if it doesn't exist
    folder: PathBuf,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    global.refuse_document("a folder of manual pages")?;
    let failed =
        |path: &Path, error: &io::Error| Failure::environment(format!("{}: {error}", path.text()));
    make_folder(&args.folder, FOLDER).map_err(|error| failed(&args.folder, &error))?;
    let mut tamis = crate::Cli::command().disable_help_subcommand(true);
    tamis.build();
    for (name, text) in pages_of(&tamis, None).map_err(|error| failed(&args.folder, &error))? {
        let path = args.folder.join(name);
        write_file(&path, &text)?;
    }
    Ok(exit::OK)
}

/// The pages of a command and its subcommands, by file name.
fn pages_of(command: &Command, parent: Option<&str>) -> io::Result<Vec<(String, Vec<u8>)>> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let mut pages = vec![(format!("{name}.1"), page(command, name, parent)?)];
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        pages.extend(pages_of(below, Some(name))?);
    }
    Ok(pages)
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> io::Result<Vec<u8>> {
    let ending = HelpSections::new(command);
    let source = format!("tamis {}", env!("CARGO_PKG_VERSION"));
    // Manuals include the parts that short helps omit.
    let whole = command
        .clone()
        .mut_args(|option| option.hide_short_help(false));
    let man = Man::new(whole).title(name.to_uppercase());
    let man = man.source(source).manual("tamis manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    paragraphs(&ending.remarks).to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if !ending.examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
        rest.control("nf", []);
        for line in &ending.examples {
            rest.text([roman(line.as_str())]);
        }
        rest.control("fi", []);
    }
    if let Some(codes) = &ending.exit_status {
        rest.control("SH", ["EXIT STATUS"]);
        rest.text([roman(codes.as_str())]);
    }
    rest.control("SH", ["SEE ALSO"]);
    let other = parent.unwrap_or("tamis-exec");
    rest.text([bold(other), roman("(1)")]);
    rest.to_writer(&mut text)?;
    Ok(text)
}

fn paragraphs(lines: &[String]) -> Roff {
    let mut roff = Roff::new();
    for line in lines {
        roff.control("PP", []);
        roff.text([roman(line.as_str())]);
    }
    roff
}

/// The sections at the end of a help.
#[derive(Default)]
struct HelpSections {
    examples: Vec<String>,
    remarks: Vec<String>,
    exit_status: Option<String>,
}

impl HelpSections {
    fn new(command: &Command) -> HelpSections {
        let text = command.get_after_long_help();
        let text = text.or_else(|| command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut ending = HelpSections::default();
        for line in text.lines() {
            if let Some(example) = line.strip_prefix("  ") {
                ending.examples.push(example.to_owned());
            } else if let Some(codes) = line.strip_prefix("Exit status: ") {
                ending.exit_status = Some(codes.to_owned());
            } else if !line.starts_with("Example") && !line.is_empty() {
                ending.remarks.push(line.to_owned());
            }
        }
        ending
    }
}
