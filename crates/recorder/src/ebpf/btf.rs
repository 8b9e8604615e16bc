//! The types of the running kernel, from `/sys/kernel/btf/vmlinux`: the few facts that programs depend on.
//!
//! BTF (BPF type format) is a list of types, numbered by position. Only the requested names and members are decoded,
//! and nothing after the last of them. Tracepoints and tasks are in the first tenth of the 5 MB of a kernel.

use std::fmt;

pub(super) use tamis_kernel::bpf::TYPES as PATH;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// The maximum depth of anonymous structures in a search for members.
const MAX_DEPTH: u32 = 4;
/// The size of the header of every type.
const FIXED_BYTES: usize = 12;

/// The kernel's types.
#[derive(Clone, Copy, Debug)]
pub struct Btf<'d> {
    types: &'d [u8],
    strings: &'d [u8],
}

/// The reason why a name isn't found in the kernel's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BtfError {
    /// The bytes are truncated, or no BTF in this machine's byte order.
    Malformed,
    /// There is no type with this name.
    NoType(String),
    /// The structure has no such member.
    NoMember(String),
}

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BtfError::Malformed => f.write_str("the kernel's types can't be read"),
            BtfError::NoType(name) => write!(f, "the kernel has no type `{name}`"),
            BtfError::NoMember(name) => write!(f, "the kernel has no member `{name}`"),
        }
    }
}

impl std::error::Error for BtfError {}

/// The kinds of types that are distinguished here.
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const ENUM64: u32 = 19;

/// The header of a type, and the offset of the data that follows it.
#[derive(Clone, Copy)]
struct Type {
    id: u32,
    name: u32,
    kind: u32,
    /// The number of members.
    count: usize,
    /// Whether members may be bit fields.
    has_bit_fields: bool,
    start: usize,
}

/// A member of a structure.
struct Member {
    name: u32,
    kind: u32,
    offset_bits: u32,
}

impl<'d> Btf<'d> {
    /// The types in the contents of a file.
    ///
    /// # Errors
    /// [`BtfError::Malformed`].
    pub fn parse(bytes: &'d [u8]) -> Result<Btf<'d>, BtfError> {
        let magic = bytes
            .first_chunk::<2>()
            .map(|bytes| u16::from_ne_bytes(*bytes));
        if magic != Some(MAGIC) || bytes.len() < HEADER_BYTES {
            return Err(BtfError::Malformed);
        }
        let field = |at: usize| word(bytes, at).map(|word| word as usize);
        let section = |offset: usize, len: usize| {
            let start = field(4)?.checked_add(field(offset)?)?;
            bytes.get(start..start.checked_add(field(len)?)?)
        };
        let types = section(8, 12).ok_or(BtfError::Malformed)?;
        let strings = section(16, 20).ok_or(BtfError::Malformed)?;
        Ok(Btf { types, strings })
    }

    /// The numbers of the type definitions with these names, as far as they exist, and the offsets in bytes of members
    /// of structures. A member is given by the index of its structure in the list and the path of names to it.
    ///
    /// # Errors
    /// [`BtfError`] for the first structure or member that is missing.
    ///
    /// # Panics
    /// If an index isn't in the list.
    pub fn find<const N: usize, const S: usize, const M: usize>(
        self,
        names: [&str; N],
        structures: [&str; S],
        members: [(usize, &[&str]); M],
    ) -> Result<([Option<u32>; N], [u32; M]), BtfError> {
        let mut ids = [None; N];
        let mut found = [None; S];
        let mut scan = Scan::new(self);
        while ids.contains(&None) || found.iter().any(Option::is_none) {
            let Some(kind) = scan.next() else {
                break;
            };
            if kind.kind == TYPEDEF {
                if let Some(place) = names.iter().position(|name| self.is_called(kind, name)) {
                    ids[place] = Some(kind.id);
                }
            } else if kind.kind == STRUCT {
                for (found, name) in found.iter_mut().zip(structures) {
                    if found.is_none() && self.is_called(kind, name) {
                        *found = Some(kind);
                    }
                }
            }
        }
        let mut offsets = [0; M];
        for (offset, (structure, path)) in offsets.iter_mut().zip(members) {
            let (kind, structure) = (found[structure], structures[structure]);
            let kind = kind.ok_or_else(|| BtfError::NoType(structure.to_owned()))?;
            *offset = self
                .offset(&mut scan, kind, path)
                .ok_or_else(|| BtfError::NoMember(format!("{structure}.{}", path.join("."))))?;
        }
        Ok((ids, offsets))
    }

    /// The offset in bytes of a member.
    fn offset(self, scan: &mut Scan<'_>, mut kind: Type, path: &[&str]) -> Option<u32> {
        let mut offset_bits = 0;
        for (depth, name) in path.iter().enumerate() {
            let member = self.member(scan, kind, name, MAX_DEPTH)?;
            offset_bits += member.offset_bits;
            if depth + 1 < path.len() {
                kind = scan.numbered(member.kind)?;
            }
        }
        Some(offset_bits / 8)
    }

    fn is_called(self, kind: Type, name: &str) -> bool {
        let text = self.strings.get(kind.name as usize..).unwrap_or_default();
        // The first byte distinguishes nearly all of some hundred thousand names.
        text.first() == name.as_bytes().first()
            && text
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The member with this name, also in anonymous structures and unions of the type.
    fn member(self, scan: &mut Scan<'_>, kind: Type, name: &str, depth: u32) -> Option<Member> {
        for index in 0..kind.count {
            let at = kind.start + 12 * index;
            let offset = word(self.types, at + 8)?;
            let member = Member {
                name: word(self.types, at)?,
                kind: word(self.types, at + 4)?,
                offset_bits: if kind.has_bit_fields {
                    offset & 0xff_ffff
                } else {
                    offset
                },
            };
            if member.name != 0 {
                if self.text(member.name) == name.as_bytes() {
                    return Some(member);
                }
                continue;
            }
            let inner = scan.numbered(member.kind).filter(|_| depth > 0);
            let is_nested = |kind: &Type| kind.kind == STRUCT || kind.kind == UNION;
            if let Some(inner) = inner.filter(is_nested)
                && let Some(found) = self.member(scan, inner, name, depth - 1)
            {
                let offset_bits = member.offset_bits + found.offset_bits;
                return Some(Member {
                    offset_bits,
                    ..found
                });
            }
        }
        None
    }

    /// The type at an offset.
    fn at(self, id: u32, at: usize) -> Option<Type> {
        let info = word(self.types, at + 4)?;
        Some(Type {
            id,
            name: word(self.types, at)?,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 != 0,
            start: at + FIXED_BYTES,
        })
    }

    /// The text at an offset, without its zero byte.
    fn text(self, offset: u32) -> &'d [u8] {
        let text = self.strings.get(offset as usize..).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0);
        &text[..end.unwrap_or(text.len())]
    }
}

/// The types in order, as far as they have been decoded.
struct Scan<'d> {
    btf: Btf<'d>,
    /// The offset of the next type.
    at: usize,
    /// The offsets of the data after the headers of the previous types.
    starts: Vec<u32>,
}

impl<'d> Scan<'d> {
    const fn new(btf: Btf<'d>) -> Scan<'d> {
        Scan {
            btf,
            at: 0,
            starts: Vec::new(),
        }
    }

    /// The next type; `None` at the end, or at an unknown kind, whose size is unknown.
    fn next(&mut self) -> Option<Type> {
        let kind = self.btf.at(self.starts.len() as u32 + 1, self.at)?;
        self.at = kind.start + own_bytes(kind)?;
        self.starts.push(kind.start as u32);
        Some(kind)
    }

    /// The type with a number.
    fn numbered(&mut self, id: u32) -> Option<Type> {
        while self.starts.len() < id as usize {
            self.next()?;
        }
        let start = *self.starts.get((id as usize).checked_sub(1)?)? as usize;
        self.btf.at(id, start - FIXED_BYTES)
    }
}

/// The size of the data after a type's header; `None` for an unknown kind.
fn own_bytes(kind: Type) -> Option<usize> {
    Some(match kind.kind {
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => 12 * kind.count,
        ENUM | FUNC_PROTO => 8 * kind.count,
        // Pointers, forward declarations, definitions, qualifiers, functions, floating point, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `typedef int number`, `struct outer { int first; struct { int inner; }; }`.
    fn example() -> Vec<u8> {
        let strings = b"\0int\0number\0outer\0first\0inner\0";
        let name = |text: &str| {
            let text = [b"\0", text.as_bytes(), b"\0"].concat();
            let at = strings.windows(text.len()).position(|part| part == text);
            at.unwrap() as u32 + 1
        };
        let info = |kind: u32, count: u32| kind << 24 | count;
        let types = [
            [name("int"), info(INT, 0), 4].as_slice(),
            &[32],
            &[name("number"), info(TYPEDEF, 0), 1],
            &[0, info(STRUCT, 1), 4],
            &[name("inner"), 1, 0],
            &[name("outer"), info(STRUCT, 2), 8],
            &[name("first"), 1, 0],
            &[0, 3, 32],
        ]
        .concat();
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sizes = [
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            strings.len() as u32,
        ];
        let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        bytes.extend(sizes.iter().flat_map(|word| word.to_ne_bytes()));
        [bytes, types, strings.to_vec()].concat()
    }

    #[test]
    fn definitions_and_members_are_found_by_name() {
        let bytes = example();
        let btf = Btf::parse(&bytes).unwrap();
        let found = btf.find(["number"], ["outer"], [(0, &["first"]), (0, &["inner"])]);
        assert_eq!(found, Ok(([Some(2)], [0, 4])));
        let missing = |name: &str| Err(BtfError::NoType(name.to_owned()));
        for name in ["int", "numb"] {
            let found = btf.find([name, "number"], ["outer"], [(0, &["first"])]);
            assert_eq!(found, Ok(([None, Some(2)], [0])), "{name}");
        }
        assert_eq!(
            btf.find(["number"], ["inner"], [(0, &["first"])]),
            missing("inner")
        );
        let missing = BtfError::NoMember("outer.third".to_owned());
        assert_eq!(
            btf.find(["number"], ["outer"], [(0, &["third"])]),
            Err(missing)
        );
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let bytes = example();
        for len in 0..bytes.len() {
            let found = Btf::parse(&bytes[..len])
                .and_then(|btf| btf.find(["number"], ["outer"], [(0, &["inner"])]));
            assert!(found.is_err(), "{len} bytes");
        }
    }
}
