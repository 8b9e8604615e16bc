//! Mapping a program into this process, with the kernel's start data: all async-signal-safe.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::ptr;

use tamis_kernel::Errno;

use crate::in_process::Program;
use crate::in_process::image::Image;
use crate::sys::frame;

const PAGE: u64 = 4096;
const STACK_BYTES: u64 = 8 << 20;

/// Maps the program, its interpreter and its stack, and announces the vDSO if the program may use it. Returns the first
/// instruction and the stack pointer.
pub(super) fn load(program: &Program, has_vdso: bool) -> Result<(u64, u64), Errno> {
    let main = map_image(&program.main)?;
    let interpreter = program.interpreter.as_ref();
    let base = interpreter.map(map_image).transpose()?;
    let entry = program.main.entry.wrapping_add(main);
    let first = match (base, interpreter) {
        (Some(base), Some(image)) => image.entry.wrapping_add(base),
        _ => entry,
    };
    let stack = map(
        0,
        STACK_BYTES,
        libc::PROT_READ | libc::PROT_WRITE,
        0,
        None,
        0,
    )?;
    let auxiliary = [
        (libc::AT_PHDR, program.main.headers.wrapping_add(main)),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, program.main.header_count),
        (libc::AT_BASE, base.unwrap_or(0)),
        (libc::AT_ENTRY, entry),
        (libc::AT_PAGESZ, PAGE),
    ];
    Ok((
        first,
        fill_stack(program, stack + STACK_BYTES, &auxiliary, has_vdso),
    ))
}

/// Maps an image; returns the offset to be added to its addresses.
fn map_image(image: &Image) -> Result<u64, Errno> {
    let (first, end) = image.span();
    let (wish, fixed) = match image.is_movable {
        true => (0, 0),
        false => (first, libc::MAP_FIXED_NOREPLACE),
    };
    // Reserves the whole span, so that the pieces are together.
    let start = map(wish, end - first, libc::PROT_NONE, fixed, None, 0)?;
    if !image.is_movable && start != first {
        return Err(Errno(libc::EEXIST));
    }
    let slide = start.wrapping_sub(first);
    for segment in &image.segments {
        let page = segment.first_page().wrapping_add(slide);
        let inset = segment.address % PAGE;
        let file_end = segment.address.wrapping_add(slide) + segment.file_bytes;
        let end = segment.end().wrapping_add(slide);
        if segment.file_bytes > 0 {
            let (len_bytes, offset) = (segment.file_bytes + inset, segment.offset - inset);
            map(
                page,
                len_bytes,
                segment.access,
                libc::MAP_FIXED,
                Some(&image.file),
                offset,
            )?;
        }
        let rest = match segment.file_bytes {
            0 => page,
            _ => file_end.next_multiple_of(PAGE),
        };
        if rest < end {
            map(rest, end - rest, segment.access, libc::MAP_FIXED, None, 0)?;
        }
        if segment.access & libc::PROT_WRITE != 0 && segment.file_bytes > 0 {
            let tail = file_end.next_multiple_of(PAGE) - file_end;
            // SAFETY: the rest of the last page of the file, just mapped and writable.
            unsafe { ptr::write_bytes(pointer::<u8>(file_end), 0, tail as usize) };
        }
    }
    Ok(slide)
}

fn map(
    wish: u64,
    len_bytes: u64,
    access: i32,
    flags: i32,
    file: Option<&std::fs::File>,
    offset: u64,
) -> Result<u64, Errno> {
    let (source, fd) = match file {
        Some(file) => (0, file.as_raw_fd()),
        None => (libc::MAP_ANONYMOUS, -1),
    };
    let flags = libc::MAP_PRIVATE | flags | source;
    let len_bytes = len_bytes as usize;
    // SAFETY: a fixed place is inside a mapping of this module, or refused if the addresses are occupied.
    let mapped = unsafe {
        libc::mmap(
            pointer(wish),
            len_bytes,
            access,
            flags,
            fd,
            offset as libc::off_t,
        )
    };
    match mapped {
        libc::MAP_FAILED => Err(Errno::last()),
        mapped => Ok(mapped as u64),
    }
}

const fn pointer<T>(address: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Writes a program's initial stack: counts, pointers, the auxiliary vector, strings.
fn fill_stack(program: &Program, end: u64, own: &[(u64, u64)], has_vdso: bool) -> u64 {
    const AT_IGNORE: u64 = 1;
    const RANDOM_BYTES: u64 = 16;
    const PASSED_ON: [u64; 9] = [
        libc::AT_UID,
        libc::AT_EUID,
        libc::AT_GID,
        libc::AT_EGID,
        libc::AT_HWCAP,
        libc::AT_HWCAP2,
        libc::AT_CLKTCK,
        libc::AT_SYSINFO_EHDR,
        libc::AT_MINSIGSTKSZ,
    ];
    let strings = || program.args.iter().chain(&program.environment);
    let bytes = |one: &CString| one.as_bytes_with_nul().len() as u64;
    let path = end - bytes(&program.path) - 8;
    put_string(path, &program.path);
    let random = path - RANDOM_BYTES;
    // Not the C library's function: the standard library's weak use of it leaves that out of static programs.
    // SAFETY: inside the stack. If it fails, the bytes are zeros, which programs can use.
    unsafe {
        libc::syscall(
            libc::SYS_getrandom,
            random,
            RANDOM_BYTES,
            libc::GRND_NONBLOCK,
        )
    };
    let mut string = random - strings().map(bytes).sum::<u64>();
    let words = 3 + strings().count() + 2 * (own.len() + PASSED_ON.len() + 4);
    let stack = (string - 8 * words as u64) & !15;
    let mut place = stack;
    let mut put = |word: u64| {
        // SAFETY: inside the stack, which is mapped and large enough for the limits of `execve`; aligned.
        unsafe { pointer::<u64>(place).write(word) };
        place += 8;
    };
    put(program.args.len() as u64);
    for list in [&program.args, &program.environment] {
        for one in list {
            put_string(string, one);
            put(string);
            string += bytes(one);
        }
        put(0);
    }
    let ours = own.iter().copied().chain([
        (libc::AT_SECURE, 0),
        (libc::AT_EXECFN, path),
        (libc::AT_RANDOM, random),
    ]);
    // SAFETY: reads numbers of this process.
    let value = |key| unsafe { libc::getauxval(key) };
    let passed_on = PASSED_ON.map(|key| match key {
        // An entry to be ignored.
        libc::AT_SYSINFO_EHDR if !has_vdso => (AT_IGNORE, 0),
        // The calls of such a guest are caught by signals.
        libc::AT_MINSIGSTKSZ if has_vdso => (key, frame::min_stack_bytes()),
        key => (key, value(key)),
    });
    for (key, value) in ours.chain(passed_on).chain([(libc::AT_NULL, 0)]) {
        put(key);
        put(value);
    }
    stack
}

fn put_string(place: u64, text: &CString) {
    let bytes = text.as_bytes_with_nul();
    // SAFETY: inside the stack, as above.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(place), bytes.len()) };
}
