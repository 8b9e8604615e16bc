//! The permitted accesses of a program to its context: a description as data.

use crate::insn::Size;

/// A part of the context that programs may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The first byte.
    pub offset: usize,
    /// How many bytes; several numbers of one kind can be one field.
    pub bytes: usize,
    /// The smallest access. Each is aligned to its size.
    pub smallest: Size,
    /// The largest access.
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
                smallest: Size::W,
                largest: Size::W,
                is_writable: false,
            }],
        }
    }

    /// `struct __sk_buff`, as filters of sockets may access it (`sk_filter_is_valid_access` in `net/core/filter.c`):
    /// numbers from `len` to `tc_index`, the five words of `cb`, which can be written, `hash` and `napi_id`. Numbers
    /// that the kernel keeps in less than 32 bits are read whole.
    pub fn socket_filter() -> Layout {
        let words = |offset, count: usize, smallest| Field {
            offset,
            bytes: 4 * count,
            smallest,
            largest: Size::W,
            is_writable: false,
        };
        let cb = Field {
            offset: 48,
            bytes: 20,
            smallest: Size::B,
            largest: Size::D,
            is_writable: true,
        };
        Layout {
            fields: vec![
                // `len`, `pkt_type`, `mark`.
                words(0, 1, Size::B),
                words(4, 1, Size::W),
                words(8, 1, Size::B),
                // From `queue_mapping` to `vlan_proto`.
                words(12, 5, Size::W),
                // `priority`, `ingress_ifindex`, `ifindex`, and then `tc_index`.
                words(32, 3, Size::B),
                words(44, 1, Size::W),
                cb,
                // `hash`, `napi_id`.
                words(68, 1, Size::B),
                words(84, 1, Size::B),
            ],
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
                is_inside
                    && (field.smallest..=field.largest).contains(&size)
                    && (field.is_writable || !is_write)
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
        assert!(!layout.permits(18, Size::H, false) && layout.permits(16, Size::W, false));
        assert!(!layout.permits(1, Size::H, false) && !layout.permits(0, Size::D, false));
        assert!(!layout.permits(0, Size::W, true) && layout.permits(48, Size::D, true));
        assert!(!layout.permits(64, Size::D, true) && layout.permits(64, Size::W, true));
        assert!(!layout.permits(76, Size::W, false) && !layout.permits(-4, Size::W, false));
    }
}
