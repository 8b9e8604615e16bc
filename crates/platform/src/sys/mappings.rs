//! The memory of a process, as the kernel lists it: all async-signal-safe.

use tamis_kernel::Errno;

/// Calls `each` with each mapping of this process.
pub(super) fn for_each_mapping(
    each: &mut dyn FnMut(&Mapping) -> Result<(), Errno>,
) -> Result<(), Errno> {
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe {
        libc::open(
            c"/proc/self/maps".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(Errno::last());
    }
    let mut line = Line::default();
    let result = loop {
        let mut bytes = [0_u8; 512];
        // SAFETY: there is room for so many bytes.
        let count = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Err(_) => break Err(Errno::last()),
            Ok(0) => break Ok(()),
            Ok(count) => {
                let mut bytes = bytes.iter().take(count);
                if let Err(errno) = bytes.try_for_each(|byte| line.take(*byte, each)) {
                    break Err(errno);
                }
            }
        }
    };
    // SAFETY: the descriptor is this function's.
    unsafe { libc::close(fd) };
    result
}

/// The same for the kernel's list of another process.
pub(super) fn each_of(
    text: &[u8],
    each: &mut dyn FnMut(&Mapping) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut line = Line::default();
    text.iter().try_for_each(|byte| line.take(*byte, each))
}

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) first: u64,
    /// The end of its addresses.
    pub(super) after: u64,
    pub(super) is_code: bool,
    pub(super) is_shared: bool,
    /// Whether it maps a file.
    pub(super) has_file: bool,
    /// Whether the kernel maps it in all processes.
    pub(super) is_kernels: bool,
}

/// A line of that file, as far as it has been read.
#[derive(Default)]
struct Line {
    mapping: Mapping,
    field: u32,
    /// The position in the field.
    place: u32,
}

impl Line {
    fn take(
        &mut self,
        byte: u8,
        each: &mut dyn FnMut(&Mapping) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        const ADDRESSES: u32 = 0;
        const AFTER: u32 = 1;
        const ACCESS: u32 = 2;
        const FILE: u32 = 5;
        const NAME: u32 = 6;
        let mapping = &mut self.mapping;
        let more = |number: u64| {
            let digit = (byte as char).to_digit(16).unwrap_or(0);
            number << 4 | u64::from(digit)
        };
        match (byte, self.field) {
            (b'\n', _) => return each(&std::mem::take(self).mapping),
            // Several spaces precede the name.
            (b' ', NAME) if self.place == 0 => return Ok(()),
            (b'-', ADDRESSES) | (b' ', AFTER..NAME) => {
                self.field += 1;
                self.place = 0;
                return Ok(());
            }
            (_, ADDRESSES) => mapping.first = more(mapping.first),
            (_, AFTER) => mapping.after = more(mapping.after),
            (b'x', ACCESS) => mapping.is_code = true,
            (b's', ACCESS) => mapping.is_shared = true,
            (b'1'..=b'9', FILE) => mapping.has_file = true,
            // [vdso], [vvar] and so on.
            (b'v', NAME) if self.place == 1 => mapping.is_kernels = !mapping.has_file,
            _ => {}
        }
        self.place += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_wherever_a_read_ends() {
        let text = b"55e0a000-55e0b000 r--p 00000000 fe:00 17                 /v x\n\
            7ffff000-80000000 rwxs 00000000 00:01 0          [vdso]\n\
            90000000-90001000 r--p 00000000 00:00 0 \n";
        let mut found = Vec::new();
        let mut each = |mapping: &Mapping| {
            found.push(*mapping);
            Ok(())
        };
        each_of(text, &mut each).unwrap();
        let mapping = |first, after| Mapping {
            first,
            after,
            ..Mapping::default()
        };
        let expected = [
            Mapping {
                has_file: true,
                ..mapping(0x55e0_a000, 0x55e0_b000)
            },
            Mapping {
                is_code: true,
                is_shared: true,
                is_kernels: true,
                ..mapping(0x7fff_f000, 0x8000_0000)
            },
            mapping(0x9000_0000, 0x9000_1000),
        ];
        assert_eq!(found, expected);
    }
}
