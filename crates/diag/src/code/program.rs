//! TM01xx: programs and the assembler.

codes! { PROGRAM;
    INVALID_PROGRAM = "TM0101", "the kernel would refuse this program",
        "Linux checks every instruction of a seccomp filter when it is installed: opcodes, offsets, jump \
         targets, scratch memory and the last instruction. This program fails that check.";
}
