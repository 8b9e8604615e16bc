//! TM15xx: programs of extended BPF.

pub use tamis_bpf::code::*;

tamis_diag::codes! { EXTENDED;
    EXTENDED_SYNTAX = "TM1501", "not a line of extended BPF",
        "A line has labels, each with a colon, and at most one instruction, as LLVM and the kernel print it: \
         `r0 = *(u32 *)(r1 + 4)`, `if w0 s> 5 goto +3`, `lock *(u64 *)(r10 - 8) += r1`, `call 7`, `exit`. An \
         instruction that has no such form can be given as `.insn code, dst, src, offset, imm`.";
    EXTENDED_NUMBER = "TM1502", "number too large for its field of an extended instruction",
        "Constants have 32 bits, and 64 in `r1 = 0x1122334455667788 ll`. Displacements have 16 bits, those of \
         `gotol` and of calls 32. With registers of 64 bits a constant is sign-extended, so it lies between -2^31 \
         and 2^31 - 1.";
    EXTENDED_PROGRAM = "TM1503", "no engine could run this extended program",
        "Every instruction must be one of the instruction set, with 0 in the fields that it does not use. Jumps and \
         calls lead to instructions of the program, not into a wide one, the program does not run past its end, and \
         r10 is not written.";
}
