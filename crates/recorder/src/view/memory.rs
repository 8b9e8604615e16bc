//! Reading the memory of a task in a call.

/// Fills a buffer from an address, and returns the number of bytes read.
pub(super) type Read<'m> = dyn Fn(u64, &mut [u8]) -> usize + 'm;

/// The page size. Reads don't cross the end of a page, because the next may be unmapped.
const PAGE_BYTES: u64 = 4096;
/// The size of reads of strings; most strings are shorter.
const CHUNK_BYTES: usize = 256;

/// At most `len` bytes, fewer where memory ends; `None` if no byte can be read.
pub(super) fn bytes(read: &Read<'_>, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let at = address.wrapping_add(bytes.len() as u64);
        let wanted = (len - bytes.len()).min(to_end_of_page(at));
        let start = bytes.len();
        bytes.resize(start + wanted, 0);
        let got = read(at, &mut bytes[start..]).min(wanted);
        bytes.truncate(start + got);
        if got < wanted {
            break;
        }
    }
    (len == 0 || !bytes.is_empty()).then_some(bytes)
}

/// The bytes before a zero byte, at most `max`, and whether there are more; `None` if they can't be read.
pub(super) fn string(read: &Read<'_>, address: u64, max: usize) -> Option<(Vec<u8>, bool)> {
    let mut text = Vec::new();
    loop {
        let at = address.wrapping_add(text.len() as u64);
        let wanted = CHUNK_BYTES.min(to_end_of_page(at));
        let start = text.len();
        text.resize(start + wanted, 0);
        let got = read(at, &mut text[start..]).min(wanted);
        text.truncate(start + got);
        if let Some(end) = text[start..].iter().position(|byte| *byte == 0) {
            text.truncate(start + end);
            let is_cut = text.len() > max;
            text.truncate(max);
            return Some((text, is_cut));
        }
        if text.len() > max {
            text.truncate(max);
            return Some((text, true));
        }
        if got < wanted {
            // A long text: a record has only its beginning.
            return (text.len() >= CHUNK_BYTES - 1).then_some((text, true));
        }
    }
}

fn to_end_of_page(address: u64) -> usize {
    (PAGE_BYTES - address % PAGE_BYTES) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that ends at 0x2000 with these bytes.
    fn at_end(last: &'static [u8]) -> impl Fn(u64, &mut [u8]) -> usize {
        move |address, buffer| {
            let start = 0x2000 - last.len() as u64;
            let Some(known) = address.checked_sub(start).filter(|_| address < 0x2000) else {
                return 0;
            };
            let known = &last[known as usize..];
            let len = known.len().min(buffer.len());
            buffer[..len].copy_from_slice(&known[..len]);
            len
        }
    }

    #[test]
    fn a_string_ends_at_its_zero_byte_or_at_the_limit() {
        let read = at_end(b"path\0");
        let text = |max| string(&read, 0x2000 - 5, max);
        assert_eq!(text(9), Some((b"path".to_vec(), false)));
        assert_eq!(text(4), Some((b"path".to_vec(), false)));
        assert_eq!(text(3), Some((b"pat".to_vec(), true)));
        assert_eq!(string(&read, 0, 9), None);
    }

    #[test]
    fn a_string_that_memory_ends_is_none() {
        assert_eq!(string(&at_end(b"path"), 0x2000 - 4, 9), None);
    }

    #[test]
    fn bytes_end_where_memory_does() {
        let read = at_end(b"abc");
        assert_eq!(bytes(&read, 0x2000 - 3, 8), Some(b"abc".to_vec()));
        assert_eq!(bytes(&read, 0x2000 - 3, 2), Some(b"ab".to_vec()));
        assert_eq!(bytes(&read, 0x3000, 8), None);
        assert_eq!(bytes(&read, 0x3000, 0), Some(Vec::new()));
    }
}
