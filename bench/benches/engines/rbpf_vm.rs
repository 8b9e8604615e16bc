//! rbpf, an interpreter and compiler of extended BPF in Rust.

use std::panic::{self, AssertUnwindSafe};

use rbpf::EbpfVmMbuff;
use tamis_abi::Endian;
use tamis_ebpf_vm::Program;

/// The instructions as rbpf takes them.
pub(crate) fn bytes(program: &Program) -> Vec<u8> {
    let insns = program.insns().iter();
    insns
        .flat_map(|insn| insn.to_bytes(Endian::Little))
        .collect()
}

/// A program in rbpf, and whether there is machine code.
pub(crate) struct Vm<'p> {
    vm: EbpfVmMbuff<'p>,
    pub(crate) has_machine_code: bool,
}

impl<'p> Vm<'p> {
    /// Prepares a program; the error is the reason for missing machine code.
    ///
    /// # Errors
    /// rbpf's.
    pub(crate) fn new(program: &'p [u8]) -> Result<Vm<'p>, String> {
        let mut vm = EbpfVmMbuff::new(Some(program)).map_err(|error| error.to_string())?;
        // It has one page for machine code, and panics if that is too small.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let compiled = panic::catch_unwind(AssertUnwindSafe(|| vm.jit_compile()));
        panic::set_hook(hook);
        let has_machine_code = matches!(compiled, Ok(Ok(())));
        if !has_machine_code {
            println!("  no machine code by rbpf: the program needs more than its one page");
        }
        Ok(Vm {
            vm,
            has_machine_code,
        })
    }

    /// The value by the interpreter; the program may access both pieces of memory, and is given the address of the second.
    pub(crate) fn run(&self, packet: &[u8], context: &[u8]) -> u32 {
        let ret = self.vm.execute_program(packet, context);
        ret.expect("the program has no fault") as u32
    }

    /// The same by the machine code.
    pub(crate) fn run_machine_code(&self, packet: &mut [u8], context: &mut [u8]) -> u32 {
        let vm: &EbpfVmMbuff<'_> = &self.vm;
        // SAFETY: the machine code does what the program says. The program is converted from a checked filter: it reads
        // the context, and the packet only before the end that stands in the context.
        let ret = unsafe { vm.execute_program_jit(packet, context) };
        ret.expect("it is compiled") as u32
    }
}
