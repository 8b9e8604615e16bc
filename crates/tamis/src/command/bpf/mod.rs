//! `tamis bpf`: single programs of instructions, from assembler text to the change of a pass.
//!
//! Policies are compiled, compared and run by the commands above; these are for who looks at what came out, or at what others
//! made. Each file is one command of the group.

pub(super) mod asm;
pub(super) mod bisect;
pub(super) mod decompile;
pub(super) mod disasm;
pub(super) mod dump;
pub(super) mod eval;
pub(super) mod fuzz;
pub(super) mod passes;
pub(super) mod reduce;
