//! Inputs between inaccessible pages: code that reads before or behind its input is stopped by the machine.

use std::ptr;

/// Memory for inputs, with inaccessible pages on both sides.
#[derive(Debug)]
pub struct Guarded {
    mapping: *mut u8,
    page_bytes: usize,
}

impl Guarded {
    /// A page of memory.
    ///
    /// # Panics
    /// If there is none.
    pub fn page() -> Guarded {
        // SAFETY: has no effects, and every system supports it.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let (none, access) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), 3 * page_bytes, none, flags, -1, 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mapping = mapping.cast::<u8>();
        // SAFETY: the page is the middle one of the mapping.
        let changed = unsafe { libc::mprotect(mapping.add(page_bytes).cast(), page_bytes, access) };
        assert_eq!(changed, 0);
        Guarded {
            mapping,
            page_bytes,
        }
    }

    /// A copy of the bytes that ends where nothing can be read.
    pub fn at_end(&mut self, bytes: &[u8]) -> &[u8] {
        self.at(true, bytes)
    }

    /// A copy of the bytes that begins where nothing before it can be read.
    pub fn at_start(&mut self, bytes: &[u8]) -> &[u8] {
        self.at(false, bytes)
    }

    /// A copy that can be written, at the end or at the start.
    ///
    /// # Panics
    /// As the others: if the bytes are more than a page.
    pub fn at(&mut self, is_at_end: bool, bytes: &[u8]) -> &mut [u8] {
        let offset = match is_at_end {
            true => 2 * self.page_bytes - bytes.len(),
            false => self.page_bytes,
        };
        self.copy(offset, bytes)
    }

    /// The same for the words of a call: at the start or the end.
    pub fn words(&mut self, is_at_end: bool, words: &[u32; 16]) -> &[u32; 16] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let copy = match is_at_end {
            true => self.at_end(&bytes),
            false => self.at_start(&bytes),
        };
        // SAFETY: the copy has as many bytes as the array, any bytes are valid, and both ends of a page are aligned.
        unsafe { &*copy.as_ptr().cast::<[u32; 16]>() }
    }

    fn copy(&mut self, offset: usize, bytes: &[u8]) -> &mut [u8] {
        assert!(bytes.len() <= self.page_bytes);
        // SAFETY: the place is inside the writable page, and `self` is borrowed as long as the result.
        unsafe {
            let place = self.mapping.add(offset);
            ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            std::slice::from_raw_parts_mut(place, bytes.len())
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.mapping.cast(), 3 * self.page_bytes) };
    }
}
