//! Memory that extended programs share with this process.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::AtomicU64;

use crate::errno::Errno;
use crate::sys::bpf::{self, MappedArray, SizedMap};
use crate::sys::ring::MappedRing;

/// `BPF_MAP_TYPE_HASH`.
const HASH: u32 = 1;
/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// `BPF_F_NO_PREALLOC`: a value for each CPU and entry takes milliseconds to make.
const NO_PREALLOC: u32 = 1;
/// `BPF_MAP_TYPE_RINGBUF`.
const RING: u32 = 27;
/// `BPF_MAP_TYPE_PERCPU_HASH`.
const PERCPU_HASH: u32 = 5;

/// An array of words, 0 at first, which programs reach by its address: a wide load of its descriptor with the variant
/// `BPF_PSEUDO_MAP_VALUE`. Kernel 5.5.
#[derive(Debug)]
pub struct Array {
    map: std::os::fd::OwnedFd,
    words: MappedArray,
}

impl Array {
    /// An array of `len` words, at least one.
    ///
    /// # Errors
    /// `EPERM` without the permission to make maps, `ENOMEM`, `EINVAL` on older kernels.
    pub fn new(len: usize) -> Result<Array, Errno> {
        let len = len.max(1);
        let value_bytes = u32::try_from(len * size_of::<u64>()).map_err(|_| Errno(libc::E2BIG))?;
        let map = bpf::create_map(ARRAY, 4, value_bytes, 1, bpf::MAPPABLE)?;
        let words = MappedArray::new(map.as_fd(), len)?;
        Ok(Array { map, words })
    }

    /// The descriptor, for the programs.
    pub fn descriptor(&self) -> RawFd {
        self.map.as_raw_fd()
    }
}

impl Deref for Array {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.words
    }
}

/// Counts by keys of one size, made by programs: a hash table with a 64-bit value for each CPU, or one for all.
#[derive(Debug)]
pub struct Counts {
    map: SizedMap,
}

impl Counts {
    /// A hash table with a value for each CPU and entries allocated on demand. It is only for programs that never run
    /// inside the kernel's allocator, such as those at entries of calls. Each CPU counts separately, so programs need
    /// no atomic operations.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn per_cpu(key_bytes: usize, max_entries: u32) -> Result<Counts, Errno> {
        let cpus = possible_cpus().ok_or(Errno(libc::ENOSYS))?;
        Counts::new(PERCPU_HASH, key_bytes, max_entries, cpus, NO_PREALLOC)
    }

    /// A table with one value for each key.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn shared(key_bytes: usize, max_entries: u32) -> Result<Counts, Errno> {
        Counts::new(HASH, key_bytes, max_entries, 1, 0)
    }

    fn new(
        kind: u32,
        key_bytes: usize,
        max_entries: u32,
        values: usize,
        flags: u32,
    ) -> Result<Counts, Errno> {
        let fd = bpf::create_map(kind, key_bytes as u32, 8, max_entries, flags)?;
        let map = SizedMap {
            fd,
            key_bytes,
            value_bytes: 8 * values,
        };
        Ok(Counts { map })
    }

    /// The descriptor, for the programs.
    pub fn descriptor(&self) -> RawFd {
        self.map.fd.as_raw_fd()
    }

    /// The value of a key, the sum of all CPUs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&self, key: &[u8]) -> Result<Option<u64>, Errno> {
        let value = self.map.lookup(key)?;
        Ok(value.map(|bytes| sum(&bytes)))
    }

    /// All keys with the sums of their values. Keys that are added meanwhile may be missing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn all(&self) -> Result<BTreeMap<Vec<u8>, u64>, Errno> {
        let mut counts = BTreeMap::new();
        let mut key = self.map.next_key(None)?;
        while let Some(known) = key {
            if let Some(count) = self.get(&known)? {
                counts.insert(known.clone(), count);
            }
            key = self.map.next_key(Some(&known))?;
        }
        Ok(counts)
    }
}

impl AsFd for Counts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.fd.as_fd()
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, word| {
        sum.wrapping_add(u64::from_ne_bytes(*word))
    })
}

/// A ring buffer from programs to this process, `BPF_MAP_TYPE_RINGBUF`. A record without space is lost, and the program
/// gets an error. Kernel 5.8.
#[derive(Debug)]
pub struct Ring {
    map: std::os::fd::OwnedFd,
    records: MappedRing,
}

impl Ring {
    /// A ring of so many bytes: a power of two, at least a page.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn new(len_bytes: u32) -> Result<Ring, Errno> {
        let map = bpf::create_map(RING, 0, 0, len_bytes, 0)?;
        let records = MappedRing::new(map.as_fd(), len_bytes as usize)?;
        Ok(Ring { map, records })
    }

    /// The descriptor, for the programs.
    pub fn descriptor(&self) -> RawFd {
        self.map.as_raw_fd()
    }

    /// Calls a function with each complete record, in the order in which they were reserved.
    pub fn drain(&mut self, read: impl FnMut(&[u8])) {
        self.records.drain(read);
    }
}

/// How many CPUs this machine may ever have; `None` without `/sys`.
pub fn possible_cpus() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    let last = text.trim().rsplit(['-', ',']).next()?;
    last.parse::<usize>().ok().map(|last| last + 1)
}
