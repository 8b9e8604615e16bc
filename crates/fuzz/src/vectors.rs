//! Input vectors: calls with the value that a filter must return for each, as a file.
//!
//! A record has 68 bytes, little-endian: `struct seccomp_data` (number, architecture, instruction pointer,
//! six arguments) and the 32-bit return value. There is no header.

use tamis_abi::{Endian, SeccompData};

use crate::side::{data, words};

/// The length of a record.
pub const RECORD_BYTES: usize = 68;

/// A call, with the value that the filter must return for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The call.
    pub data: SeccompData,
    /// The value.
    pub ret: u32,
}

/// The records of some vectors, in order.
///
/// ```
/// use tamis_abi::SeccompData;
/// use tamis_fuzz::vectors::{Vector, read, write};
/// let vector = Vector { data: SeccompData { nr: 39, ..SeccompData::default() }, ret: 0x7fff_0000 };
/// assert_eq!(read(&write([vector])), Some(vec![vector]));
/// ```
pub fn write(vectors: impl IntoIterator<Item = Vector>) -> Vec<u8> {
    let record = |vector: Vector| {
        let image = vector.data.image(Endian::Little).into_iter();
        image.chain([vector.ret]).flat_map(u32::to_le_bytes)
    };
    vectors.into_iter().flat_map(record).collect()
}

/// The vectors of a file; `None` if it isn't a whole number of records.
pub fn read(bytes: &[u8]) -> Option<Vec<Vector>> {
    let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
    let vector = |record: &[u8; RECORD_BYTES]| {
        let (words, _) = record.as_chunks::<4>();
        let mut values = words.iter().map(|word| u32::from_le_bytes(*word));
        let mut all = self::words(&SeccompData::default());
        for (word, value) in all.iter_mut().zip(&mut values) {
            *word = value;
        }
        Vector {
            data: data(&all),
            ret: values.next().unwrap_or_default(),
        }
    };
    rest.is_empty()
        .then(|| records.iter().map(vector).collect())
}
