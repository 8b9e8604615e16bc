//! Programs in ELF objects, as clang builds them for BPF.
//!
//! A section with code is a program; functions that it calls in other sections are appended. Objects that need more
//! than instructions (maps, global data, functions of the kernel) are rejected by name. The structure of the file is
//! read by the crate `object`, which checks every offset, so a truncated or hostile file is an error.

use std::collections::BTreeMap;
use std::error;
use std::fmt;

use object::elf::{EM_BPF, R_BPF_64_32};
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{
    Architecture, Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionIndex, SectionKind,
};
use tamis_abi::Endian;
use tamis_bpf::extended::Insn;

use crate::decode;
use crate::insn::Op;
use crate::program::{InvalidProgram, Pc, Program, Reason, insns_from_bytes};

/// The most sections with code, and the longest name of one.
const MAX_SECTIONS: usize = 1024;
const MAX_NAME_BYTES: usize = 255;

/// An object whose header was read.
#[derive(Debug)]
pub struct Object<'d> {
    file: ElfFile64<'d, Endianness>,
    endian: Endian,
}

/// The reason why an object gives no program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElfError {
    /// The file is not a 64-bit ELF file, or its structure is broken; in words of the reader.
    Malformed(String),
    /// The file is for another machine than BPF.
    OtherMachine,
    /// There is no section with code that has this name.
    NoSection {
        /// The name.
        name: String,
        /// The sections with code.
        known: Vec<String>,
    },
    /// The length of a section is no multiple of eight.
    Length {
        /// The section.
        section: String,
        /// Its length.
        bytes: usize,
    },
    /// An instruction refers to something that is not code of the object, such as a map.
    Refers {
        /// The section of the instruction.
        section: String,
        /// Its place there.
        pc: Pc,
        /// The referenced symbol, or the section that a symbol without a name stands for; empty if there is none.
        symbol: String,
    },
    /// The instructions are no program.
    Invalid(InvalidProgram),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::Malformed(what) => write!(f, "not an ELF object of 64 bits: {what}"),
            ElfError::OtherMachine => f.write_str("the object is not for BPF"),
            ElfError::NoSection { name, known } => {
                let known = tamis_diag::words::list(known);
                write!(f, "no section `{name}` with code; the object has {known}")
            }
            ElfError::Length { section, bytes } => {
                write!(
                    f,
                    "section `{section}` has {bytes} bytes, not a multiple of 8"
                )
            }
            ElfError::Refers {
                section,
                pc: Pc(pc),
                symbol,
            } => {
                let symbol = match symbol.as_str() {
                    "" => "a symbol without a name".to_owned(),
                    name => format!("`{name}`"),
                };
                write!(
                    f,
                    "instruction {pc} of section `{section}` refers to {symbol}, which is no function of the object"
                )
            }
            ElfError::Invalid(error) => error.fmt(f),
        }
    }
}

impl error::Error for ElfError {}

impl From<object::Error> for ElfError {
    fn from(error: object::Error) -> ElfError {
        ElfError::Malformed(error.to_string())
    }
}

impl<'d> Object<'d> {
    /// Reads the header of an object.
    ///
    /// # Errors
    /// [`ElfError::Malformed`], [`ElfError::OtherMachine`].
    pub fn parse(bytes: &'d [u8]) -> Result<Object<'d>, ElfError> {
        let file: ElfFile64<'d, Endianness> = ElfFile64::parse(bytes)?;
        let endian = match file.endian() {
            Endianness::Little => Endian::Little,
            Endianness::Big => Endian::Big,
        };
        let machine = file.elf_header().e_machine.get(file.endian());
        if machine != EM_BPF || file.architecture() != Architecture::Bpf {
            return Err(ElfError::OtherMachine);
        }
        Ok(Object { file, endian })
    }

    /// The names of sections with code, in the order of the file.
    ///
    /// # Errors
    /// [`ElfError::Malformed`], also for more than 1024 such sections or names of more than 255 bytes: names of a hostile
    /// object can overlap, so that their sum is far larger than the file.
    pub fn sections(&self) -> Result<Vec<String>, ElfError> {
        let with_code = self
            .file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text && section.size() > 0);
        let mut names = Vec::new();
        for section in with_code {
            let name = section.name()?;
            if names.len() == MAX_SECTIONS || name.len() > MAX_NAME_BYTES {
                return Err(ElfError::Malformed(format!(
                    "more than {MAX_SECTIONS} sections with code, or a name of more than {MAX_NAME_BYTES} bytes"
                )));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// The program in a section, which begins with the section's first function.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn program(&self, section: &str) -> Result<Program, ElfError> {
        let mut named = self
            .file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text);
        let Some(first) = named.find(|found| found.name() == Ok(section)) else {
            return Err(ElfError::NoSection {
                name: section.to_owned(),
                known: self.sections()?,
            });
        };
        let mut linked = Linked {
            object: self,
            insns: Vec::new(),
            sections: Vec::new(),
            starts: BTreeMap::new(),
        };
        linked.add(first.index())?;
        let mut next = 0;
        while next < linked.sections.len() {
            let (index, start) = linked.sections[next];
            linked.resolve(index, start)?;
            next += 1;
        }
        Program::new(linked.insns, self.endian).map_err(ElfError::Invalid)
    }

    /// The name of a symbol, or of its section: clang's symbols for sections have no name.
    fn name_of(&self, symbol: &ElfSymbol64<'_, '_, Endianness>) -> String {
        let own = symbol.name().unwrap_or_default();
        let section = || {
            let index = symbol.section_index()?;
            let section = self.file.section_by_index(index).ok()?;
            section.name().ok().map(str::to_owned)
        };
        match own {
            "" => section().unwrap_or_default(),
            name => name.to_owned(),
        }
    }
}

/// Sections that are put one behind the other.
struct Linked<'o, 'd> {
    object: &'o Object<'d>,
    insns: Vec<Insn>,
    /// The sections and where they begin in `insns`, in this order.
    sections: Vec<(SectionIndex, usize)>,
    /// The same by section.
    starts: BTreeMap<usize, usize>,
}

impl Linked<'_, '_> {
    /// Adds a section unless it is there already; returns where it begins.
    fn add(&mut self, index: SectionIndex) -> Result<usize, ElfError> {
        if let Some(start) = self.starts.get(&index.0) {
            return Ok(*start);
        }
        let section = self.object.file.section_by_index(index)?;
        let data = section.data()?;
        let insns = insns_from_bytes(data, self.object.endian).ok_or_else(|| ElfError::Length {
            section: section.name().unwrap_or_default().to_owned(),
            bytes: data.len(),
        })?;
        let start = self.insns.len();
        self.insns.extend(insns);
        // Sections of a hostile object can overlap, so that their sum is far larger than the file.
        let len_insns = self.insns.len();
        if len_insns > Program::MAX_INSNS {
            let (pc, reason) = (Pc(0), Reason::TooLong { len_insns });
            return Err(ElfError::Invalid(InvalidProgram { pc, reason }));
        }
        self.sections.push((index, start));
        self.starts.insert(index.0, start);
        Ok(start)
    }

    /// Makes the calls of a section to other places of the object lead there.
    fn resolve(&mut self, index: SectionIndex, start: usize) -> Result<(), ElfError> {
        let object = self.object;
        let section = object.file.section_by_index(index)?;
        for (offset, relocation) in section.relocations() {
            let pc = usize::try_from(offset).unwrap_or(usize::MAX) / Insn::SIZE_BYTES;
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                let what = "a relocation without a symbol".to_owned();
                return Err(ElfError::Malformed(what));
            };
            let symbol = self.object.file.symbol_by_index(symbol)?;
            let refers = || ElfError::Refers {
                section: section.name().unwrap_or_default().to_owned(),
                pc: Pc(pc),
                symbol: object.name_of(&symbol),
            };
            let is_call = relocation.flags()
                == RelocationFlags::Elf {
                    r_type: R_BPF_64_32,
                };
            let function = symbol
                .section_index()
                .filter(|_| is_call)
                .ok_or_else(refers)?;
            if self.object.file.section_by_index(function)?.kind() != SectionKind::Text {
                return Err(refers());
            }
            let place = start.saturating_add(pc);
            let Some(Op::CallLocal(addend)) = self.insns.get(place..).and_then(decode) else {
                return Err(refers());
            };
            let base = self.add(function)?;
            // The addend is relative to the instruction behind the call, as the distance is.
            let in_section = i64::try_from(symbol.address() / Insn::SIZE_BYTES as u64).ok();
            let distance = in_section.and_then(|at| {
                let target = at
                    .checked_add(i64::from(addend) + 1)?
                    .checked_add(base as i64)?;
                i32::try_from(target.checked_sub(place as i64 + 1)?).ok()
            });
            self.insns[place].imm = distance.ok_or_else(refers)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
