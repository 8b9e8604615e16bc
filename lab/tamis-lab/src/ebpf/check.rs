//! `tamis-lab ebpf check`: whether programs of object files are safe, by the rules of the kernel's checker.

use tamis_cli::{Failure, Global, exit, input, output};
use tamis_session::files;

use crate::object;

/// Check programs of an object file as the kernel does
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis-lab ebpf check filter.o
Exit status: 1 if a program isn't safe, 2 if one can't be read.")]
pub(crate) struct Args {
    /// The object file
    #[arg(value_parser = input::path_parser())]
    object: String,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    global.refuse_document("the result of a check")?;
    let input = files::read(&args.object)?;
    let Some(sections) = object::sections(&input)? else {
        return Err(Failure::input(format!("{} is no object file", input.name)));
    };
    let mut text = String::new();
    let mut are_safe = true;
    let mut are_read = true;
    for object::Section { name, program } in sections {
        let answer = match program.map(object::checked) {
            Ok(Ok(_)) => "safe".to_owned(),
            Ok(Err(reason)) => {
                are_safe = false;
                reason
            }
            Err(error) => {
                are_read = false;
                format!("not checked: {error}")
            }
        };
        text.push_str(&format!("{name}: {answer}\n"));
    }
    output::print(text.as_bytes())?;
    match (are_safe, are_read) {
        (false, _) => Ok(exit::NO),
        (true, true) => Ok(exit::OK),
        (true, false) => {
            let message = format!("{}: not all of its sections could be read", input.name);
            Err(Failure::input(message))
        }
    }
}
