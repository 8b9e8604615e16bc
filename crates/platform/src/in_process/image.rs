//! Reading a program: the bytes of its file and their addresses.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{
    EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD, PT_PHDR,
};
use object::read::elf::{FileHeader, ProgramHeader};

use tamis_kernel::Errno;

const PAGE: u64 = 4096;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// A program or its interpreter.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) file: File,
    pub(crate) segments: Vec<Segment>,
    /// Whether it can be loaded at any address.
    pub(crate) is_movable: bool,
    pub(crate) entry: u64,
    /// The address of its table of segments.
    pub(crate) headers: u64,
    pub(crate) header_count: u64,
}

/// A part of an image, by the addresses in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// `PROT_*`.
    pub(crate) access: i32,
}

impl Segment {
    /// The address of its first page.
    pub(crate) const fn first_page(&self) -> u64 {
        self.address & !(PAGE - 1)
    }

    /// The end of its last page.
    pub(crate) const fn end(&self) -> u64 {
        (self.address + self.memory_bytes).next_multiple_of(PAGE)
    }
}

impl Image {
    /// The address of its first page and the end of its last.
    pub(crate) fn span(&self) -> (u64, u64) {
        let first = self.segments.iter().map(Segment::first_page).min();
        let end = self.segments.iter().map(Segment::end).max();
        (first.unwrap_or(0), end.unwrap_or(0))
    }
}

/// Reads a program; also the path of its interpreter, if it has one.
pub(crate) fn read(path: &Path) -> Result<(Image, Option<PathBuf>), Errno> {
    const NO_PROGRAM: Errno = Errno(libc::ENOEXEC);
    let errno = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::EIO));
    let mut file = File::open(path).map_err(errno)?;
    if file.metadata().map_err(errno)?.len() > MAX_FILE_BYTES {
        return Err(Errno(libc::E2BIG));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(errno)?;
    let header = FileHeader64::<LittleEndian>::parse(&*bytes).map_err(|_| NO_PROGRAM)?;
    let kind = header.e_type.get(LittleEndian);
    if header.e_machine.get(LittleEndian) != EM_X86_64 || ![ET_EXEC, ET_DYN].contains(&kind) {
        return Err(NO_PROGRAM);
    }
    let table = header.program_headers(LittleEndian, &*bytes);
    let table = table.map_err(|_| NO_PROGRAM)?;
    let (mut segments, mut interpreter, mut headers) = (Vec::new(), None, None);
    for entry in table {
        let address = entry.p_vaddr(LittleEndian);
        match entry.p_type(LittleEndian) {
            PT_LOAD => segments.push(segment(entry, bytes.len() as u64).ok_or(NO_PROGRAM)?),
            PT_PHDR => headers = Some(address),
            PT_INTERP => {
                let path = entry.data(LittleEndian, &*bytes).map_err(|()| NO_PROGRAM)?;
                let path = path.strip_suffix(&[0]).unwrap_or(path);
                interpreter = Some(PathBuf::from(OsStr::from_bytes(path)));
            }
            _ => {}
        }
    }
    let first = segments.first().ok_or(NO_PROGRAM)?;
    let headers_at = header.e_phoff.get(LittleEndian) + first.address - first.offset;
    let image = Image {
        is_movable: kind == ET_DYN,
        entry: header.e_entry.get(LittleEndian),
        headers: headers.unwrap_or(headers_at),
        header_count: table.len() as u64,
        segments,
        file,
    };
    Ok((image, interpreter))
}

fn segment(entry: &object::elf::ProgramHeader64<LittleEndian>, file_bytes: u64) -> Option<Segment> {
    let flags = entry.p_flags(LittleEndian);
    let access = [
        (PF_R, libc::PROT_READ),
        (PF_W, libc::PROT_WRITE),
        (PF_X, libc::PROT_EXEC),
    ];
    let segment = Segment {
        address: entry.p_vaddr(LittleEndian),
        offset: entry.p_offset(LittleEndian),
        file_bytes: entry.p_filesz(LittleEndian),
        memory_bytes: entry.p_memsz(LittleEndian),
        access: access
            .iter()
            .filter(|(flag, _)| flags.0 & flag.0 != 0)
            .fold(0, |all, (_, access)| all | access),
    };
    let end = segment.address.checked_add(segment.memory_bytes)?;
    let is_in_file = segment.offset.checked_add(segment.file_bytes)? <= file_bytes;
    let is_aligned = segment.address % PAGE == segment.offset % PAGE;
    let fits = segment.file_bytes <= segment.memory_bytes && end < 1 << 47;
    (is_in_file && is_aligned && fits).then_some(segment)
}

/// A string of the kernel's interface.
pub(crate) fn c_string(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno(libc::EINVAL))
}
