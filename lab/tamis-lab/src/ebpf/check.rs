//! `tamis-lab ebpf check`: whether programs of object files are safe, by the rules of the kernel's checker.

use tamis_cli::{Failure, Global, exit, input, output};
use tamis_session::files;

use crate::object;

/// Check programs of an object file as the kernel does
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  tamis-lab ebpf check filter.o
Exit status: 1 if a program isn't safe.")]
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
    for object::Section { name, program } in sections {
        let answer = match object::checked(program) {
            Ok(_) => "safe".to_owned(),
            Err(reason) => {
                are_safe = false;
                reason
            }
        };
        text.push_str(&format!("{name}: {answer}\n"));
    }
    output::print(text.as_bytes())?;
    Ok(if are_safe { exit::OK } else { exit::NO })
}
