//! TM01xx: programs and the assembler.

pub use tamis_diag::code::*;

tamis_diag::codes! { PROGRAM;
    INVALID_PROGRAM = "TM0101", "the kernel would refuse this program",
        "Linux checks every instruction of a seccomp filter when it is installed: opcodes, offsets, jump \
         targets, scratch memory and the last instruction. This program fails that check.";
    ASSEMBLER_SYNTAX = "TM0102", "not an assembler line",
        "A line of an assembler text holds labels, each with a colon, and at most one instruction, such \
         as `ld [nr]`, `jeq #39, denied` or `ret #allow`. The spelling is that of the kernel's bpf_asm; \
         constants begin with `#`.";
    UNKNOWN_MNEMONIC = "TM0103", "unknown instruction",
        "The first word of the line names no instruction of classic BPF. An instruction that has no \
         name can be given as `.insn code, jt, jf, k`.";
    UNKNOWN_NAME = "TM0104", "unknown name in an assembler text",
        "Fields of the call (`ld [arg0.low]`), actions (`#errno(1)`), architectures (`#arch(x86_64)`) \
         and system calls of an architecture (`#nr(x86_64, openat)`) have names. Numbers of system calls \
         differ between architectures, so a system call is always named together with one.";
    NUMBER_TOO_LARGE = "TM0105", "number too large for its field",
        "Constants have 32 bits, the data of an action 16, and a raw instruction has a code of 16 bits, \
         two displacements of 8 and a constant of 32. tamis does not cut numbers silently.";
    UNDEFINED_LABEL = "TM0106", "undefined label",
        "A jump names a label that is not defined. Labels are case-sensitive.";
    DUPLICATE_LABEL = "TM0107", "label defined twice",
        "A label denotes one instruction. Rename one of the two, and the jumps to it.";
    UNUSED_LABEL = "TM0108", "nothing jumps to a label",
        "The label has no effect. It may be a leftover, or a jump may name the wrong label.";
    BACKWARD_JUMP = "TM0109", "jump backwards",
        "The kernel requires that a filter terminates, so jumps go forwards only. Move the target behind the \
         jump, or repeat its instructions.";
    BRANCH_TOO_FAR = "TM0110", "branch too far",
        "The displacement of a conditional jump has eight bits: it skips at most 255 instructions. Jump to a \
         nearer `ja` instead; `ja` reaches every later instruction.";
    PROGRAM_TEXT = "TM0111", "not a program in this form",
        "Programs are read from raw bytes and from several forms of text: assembler, arrays of C, the \
         language and listings of seccomp-tools, decimal numbers as tcpdump -ddd prints them, and \
         hexadecimal bytes. The text is in none of these forms, or has an error; `--from` sets the form.";
}
