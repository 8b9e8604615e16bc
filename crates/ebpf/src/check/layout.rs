//! What a program may do with its context: a description as data.

use crate::insn::Size;

/// A part of the context that programs may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The first byte.
    pub offset: usize,
    /// How many bytes; several numbers of one kind can be one field.
    pub bytes: usize,
    /// The largest access. Smaller ones are permitted too; each is aligned to its size.
    pub largest: Size,
    /// Whether it may be written.
    pub is_writable: bool,
}

/// The context of a kind of program. Bytes that are in no field can't be accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The fields.
    pub fields: Vec<Field>,
}

impl Layout {
    /// No context.
    pub fn none() -> Layout {
        Layout { fields: Vec::new() }
    }

    /// `struct seccomp_data`, as converted filters read it.
    pub fn seccomp() -> Layout {
        Layout {
            fields: vec![Field {
                offset: 0,
                bytes: crate::convert::SECCOMP_CONTEXT_BYTES,
                largest: Size::W,
                is_writable: false,
            }],
        }
    }

    /// `struct __sk_buff`, as filters of sockets may access it (`sk_filter_is_valid_access` in `net/core/filter.c`):
    /// numbers from `len` on, the five words of `cb`, which can be written, the hash, and the fields of Linux that
    /// follow, except for addresses of the packet and those for other kinds of programs.
    pub fn socket_filter() -> Layout {
        let words = |offset, count: usize| Field {
            offset,
            bytes: 4 * count,
            largest: Size::W,
            is_writable: false,
        };
        let cb = Field {
            offset: 48,
            bytes: 20,
            largest: Size::D,
            is_writable: true,
        };
        Layout {
            // From `len` to `tc_index`, `cb`, `hash`, `napi_id`.
            fields: vec![words(0, 12), cb, words(68, 1), words(84, 1)],
        }
    }

    /// Whether an access is permitted.
    pub(super) fn permits(&self, offset: i64, size: Size, is_write: bool) -> bool {
        let Ok(start) = usize::try_from(offset) else {
            return false;
        };
        let bytes = size.bytes();
        let mut fields = self.fields.iter();
        start.is_multiple_of(bytes)
            && fields.any(|field| {
                let is_inside =
                    field.offset <= start && start + bytes <= field.offset + field.bytes;
                is_inside && size <= field.largest && (field.is_writable || !is_write)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_aligned_inside_a_field_and_not_too_large() {
        let layout = Layout::socket_filter();
        assert!(layout.permits(0, Size::W, false) && layout.permits(3, Size::B, false));
        assert!(!layout.permits(1, Size::H, false) && !layout.permits(0, Size::D, false));
        assert!(!layout.permits(0, Size::W, true) && layout.permits(48, Size::D, true));
        assert!(!layout.permits(64, Size::D, true) && layout.permits(64, Size::W, true));
        assert!(!layout.permits(76, Size::W, false) && !layout.permits(-4, Size::W, false));
    }
}
