//! Families of filters: one filter for each combination of a policy's options. A policy without options is a family of
//! one.
//!
//! The text of a family with options has a type for each option, a structure of them, and a function that looks up the
//! filter of a combination, assembles it and binds its variables. Programs are [stored together](share);
//! [`assemble`] makes the family of a matrix.

pub mod assemble;
pub mod share;

use tamis_abi::{Arch, Endian, Word};
use tamis_bpf::Program;
use tamis_compiler::Compiled;
use tamis_policy::matrix::{Matrix, OptionAxis};
use tamis_rules::Variable;

use self::share::Shared;

/// The size of an instruction, and of a patch, in bytes.
const INSN_BYTES: usize = 8;
const PATCH_BYTES: usize = 4;

/// The filters of a family.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name of the policy or matrix in the text.
    pub input: String,
    /// The architectures that the filters have rules for.
    pub archs: Vec<Arch>,
    /// The byte order of their machines.
    pub endian: Endian,
    /// The options; none for a policy without options.
    pub options: Vec<OptionAxis>,
    /// The variables of all filters.
    pub variables: Vec<Variable>,
    /// The indices of each combination of the matrix; `None` if it is excluded or was not selected.
    pub members: Vec<Option<Member>>,
    /// The permitted values by variable, for the members that refer to them.
    pub ranges: Vec<Vec<(u64, u64)>>,
    /// The distinct filters.
    pub programs: Vec<FamilyProgram>,
    /// Their instructions, stored together; `None` without options.
    pub shared: Option<Shared>,
}

/// The filter and the ranges of a combination, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The filter.
    pub program: usize,
    /// The ranges of its variables.
    pub ranges: usize,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FamilyProgram {
    /// The instructions, with 0 in the places of variables.
    pub program: Program,
    /// The places of values: the instruction, and the index of the half among the halves of the family's variables,
    /// two each.
    pub patches: Vec<(u16, u8)>,
}

/// The sizes of the filters: instructions and patches, without the table of combinations.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Each combination's filter stored separately.
    pub separate_bytes: usize,
    /// Equal filters stored once.
    pub distinct_bytes: usize,
    /// The form in source code.
    pub shared_bytes: usize,
}

impl Family {
    /// The family of a policy without options.
    pub fn single(policy: &str, archs: &[Arch], filter: &Compiled) -> Family {
        let variables = filter.variables();
        Family {
            input: policy.to_owned(),
            archs: archs.to_vec(),
            endian: filter.endian(),
            options: Vec::new(),
            variables: variables.to_vec(),
            members: vec![Some(Member {
                program: 0,
                ranges: 0,
            })],
            ranges: vec![variables.iter().map(|variable| variable.range).collect()],
            programs: vec![FamilyProgram::new(filter, variables, variables)],
            shared: None,
        }
    }

    /// The indices of a combination; `None` if it is excluded or was not selected.
    pub fn member(&self, matrix: &Matrix, values: &[usize]) -> Option<Member> {
        self.members[matrix.index_of(values)]
    }

    /// The sizes of the filters.
    pub fn sizes(&self) -> Sizes {
        let members = self.members.iter().flatten();
        let separate = members.map(|member| self.programs[member.program].size_bytes());
        let distinct_bytes = self.programs.iter().map(FamilyProgram::size_bytes).sum();
        let patches: usize = self.programs.iter().map(|own| own.patches.len()).sum();
        let shared = self.shared.as_ref();
        Sizes {
            separate_bytes: separate.sum(),
            distinct_bytes,
            shared_bytes: shared.map_or(distinct_bytes, |shared| {
                shared.bytes() + patches * PATCH_BYTES
            }),
        }
    }
}

impl FamilyProgram {
    /// A filter with the variables that it declares, in a family with these variables.
    ///
    /// # Panics
    /// If the family lacks a variable of the filter.
    fn new(filter: &Compiled, declared: &[Variable], all: &[Variable]) -> FamilyProgram {
        let half = |word: Word| {
            let half = word.index() - Word::COUNT;
            let title = declared[half / 2].title();
            let place = all.iter().position(|own| own.title() == title);
            (place.expect("the family has all variables") * 2 + half % 2) as u8
        };
        let template = filter.template();
        let patches = template.patches().iter();
        FamilyProgram {
            program: template.unbound().clone(),
            patches: patches
                .map(|patch| (patch.pc.0 as u16, half(patch.word)))
                .collect(),
        }
    }

    fn size_bytes(&self) -> usize {
        self.program.len() * INSN_BYTES + self.patches.len() * PATCH_BYTES
    }
}
