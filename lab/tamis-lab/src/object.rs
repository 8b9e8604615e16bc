//! Object files with extended programs, as clang emits them, as input of commands.

use tamis_ebpf_vm::check::{self, Checked, Layout, check};
use tamis_ebpf_vm::elf::{ElfError, Object};
use tamis_ebpf_vm::{Program, socket};
use tamis_session::Input;

use tamis_cli::Failure;

/// The magic number of ELF.
const MAGIC: [u8; 4] = *b"\x7fELF";

/// The most sections that give no program: each may be as long as the file, and sections of a hostile object can overlap.
const MAX_UNREADABLE: usize = 64;

/// A section of an object file with code, and its program or the reason that it gives none, such as a use of a map.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) program: Result<Program, ElfError>,
}

/// A section and its program.
pub(crate) struct Readable {
    pub(crate) name: String,
    pub(crate) program: Program,
}

/// The sections, if all give programs.
pub(crate) fn all_readable(sections: Vec<Section>) -> Result<Vec<Readable>, Failure> {
    let readable = |Section { name, program }| match program {
        Ok(program) => Ok(Readable { name, program }),
        Err(error) => Err(Failure::input(error.to_string())),
    };
    sections.into_iter().map(readable).collect()
}

/// The programs of an object file, one per section, at least one of them readable; `None` for other input.
pub(crate) fn sections(input: &Input) -> Result<Option<Vec<Section>>, Failure> {
    if !input.bytes.starts_with(&MAGIC) {
        return Ok(None);
    }
    let wrong = |error: ElfError| Failure::input(format!("{}: {error}", input.name));
    let object = Object::parse(&input.bytes).map_err(wrong)?;
    let mut sections = Vec::new();
    let mut len_insns = 0;
    let mut unreadable = 0;
    for name in object.sections().map_err(wrong)? {
        let program = object.program(&name);
        if let Err(error) = &program {
            unreadable += 1;
            if unreadable > MAX_UNREADABLE {
                return Err(wrong(error.clone()));
            }
        }
        // Sections of a hostile object can overlap.
        len_insns += program.as_ref().map_or(0, |program| program.insns().len());
        if len_insns > Program::MAX_INSNS {
            let message = "its programs have more instructions together than a program may have";
            return Err(Failure::input(format!("{}: {message}", input.name)));
        }
        sections.push(Section { name, program });
    }
    if let [
        Section {
            program: Err(error),
            ..
        },
        rest @ ..,
    ] = &sections[..]
        && rest.iter().all(|section| section.program.is_err())
    {
        return Err(wrong(error.clone()));
    }
    if sections.is_empty() {
        let message = format!("{}: the object has no section with code", input.name);
        return Err(Failure::input(message));
    }
    Ok(Some(sections))
}

/// The selected program of an object file: that of the named section, or the only one; `None` for other input.
pub(crate) fn program(input: &Input, section: Option<&str>) -> Result<Option<Program>, Failure> {
    let Some(sections) = sections(input)? else {
        return match section {
            Some(_) => Err(Failure::usage(
                format!("{} is no object file", input.name),
                "`--section` is for the objects that clang makes",
            )),
            None => Ok(None),
        };
    };
    let names: Vec<String> = sections.iter().map(|one| one.name.clone()).collect();
    let mut fitting = sections.into_iter();
    let found = match section {
        Some(name) => fitting.find(|one| one.name == name),
        None if names.len() == 1 => fitting.next(),
        None => None,
    };
    match found {
        Some(one) => match one.program {
            Ok(program) => Ok(Some(program)),
            Err(error) => Err(Failure::input(format!("{}: {error}", input.name))),
        },
        None => Err(Failure::usage(
            format!("{} has the sections {}", input.name, names.join(", ")),
            "name the one with the program by `--section`",
        )),
    }
}

/// Checks a program for sockets by the kernel's rules; the error is the reason that it isn't safe.
pub(crate) fn checked(program: Program) -> Result<Checked, String> {
    let (layout, options) = (Layout::socket_filter(), check::Options::default());
    let checked = check(program, &layout, &socket::helpers(), &options);
    checked.map_err(|refusal| format!("the program isn't safe: {refusal}"))
}
