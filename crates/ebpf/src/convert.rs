//! Classic programs as extended ones.
//!
//! The translation is the kernel's, [`tamis_bpf::convert`]; this module makes a [`Program`] of it and says which
//! memory it runs on.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::convert::{self, JumpTooFar};

use crate::program::Program;

/// The size of the context of a converted seccomp filter, `struct seccomp_data`.
pub const SECCOMP_CONTEXT_BYTES: usize = 64;

/// The program that the kernel runs in place of a seccomp filter.
///
/// ```
/// use tamis_abi::{Endian, SeccompData};
/// use tamis_ebpf::convert::{converted, seccomp_context};
/// use tamis_ebpf::memory::{Context, Helpers, Memory};
/// let filter = vec![tamis_bpf::Op::LoadData(4).into(), tamis_bpf::Op::RetA.into()];
/// let filter = tamis_bpf::Program::new(filter, Endian::Little).unwrap();
/// let program = converted(&filter).unwrap();
/// let call = SeccompData { arch: 7, ..SeccompData::default() };
/// let context = seccomp_context(&call, Endian::Little);
/// let mut memory = Memory::new(Context::ReadOnly(&context), &[], Endian::Little);
/// let run = tamis_ebpf::interp::run(&program, &mut memory, &mut Helpers::none(), 10);
/// assert_eq!(run.unwrap().ret, 7);
/// ```
///
/// # Errors
/// [`JumpTooFar`], only for programs that are not [installable](tamis_bpf::Program::is_installable).
///
/// # Panics
/// Never: what the conversion gives is valid.
pub fn converted(filter: &tamis_bpf::Program) -> Result<Program, JumpTooFar> {
    let insns = convert::convert(filter)?;
    Ok(Program::new(insns, filter.endian()).expect("a conversion is a program"))
}

/// The bytes of a call in the memory of a machine.
pub fn seccomp_context(call: &SeccompData, endian: Endian) -> [u8; SECCOMP_CONTEXT_BYTES] {
    let mut bytes = [0; SECCOMP_CONTEXT_BYTES];
    for (word, at) in call.image(endian).iter().zip(bytes.as_chunks_mut().0) {
        *at = match endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
    }
    bytes
}
