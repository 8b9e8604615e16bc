//! TM04xx: compiling.

pub use tamis_rules::code::*;

tamis_diag::codes! { COMPILE;
    PROGRAM_TOO_LONG = "TM0401", "the program would be too long",
        "The kernel takes at most 4096 instructions per filter (BPF_MAXINSNS). The message names the system \
         calls whose conditions take the most instructions, and the rules they come from. The usual reason \
         is conditions that combine many values of several arguments: values of one argument are cheap, but \
         combinations multiply. Several filters can be installed on one task, and the most restrictive \
         action wins, so a policy can be split into one that denies some calls and one that denies others.";
    MIXED_BYTE_ORDER = "TM0402", "architectures of both byte orders",
        "A filter reads 64-bit arguments as two 32-bit words, and which of the two comes first depends on \
         the byte order of the machine. A program is compiled for one byte order. No machine runs programs \
         of both, so compile a policy that covers both twice.";
    CONDITION_TOO_DEEP = "TM0403", "a condition nests too deeply",
        "Conditions may nest 512 levels deep. Lists of alternatives may have any length, so a deep \
         condition is nearly always a list written as `a or (b or (c or ...))`.";
    UNPROVEN = "TM0404", "the program could not be proved equivalent",
        "Every compilation ends with a proof that the program returns what the policy says for every \
         possible call. The memory for the proof grows with the number of combinations of conditions on \
         different arguments. Beyond a limit tamis gives up and does not output the unproven program. Real \
         policies stay a thousand times below the limit.";
    UNBOUND_VARIABLE = "TM0405", "a variable is not bound",
        "The policy declares a run-time variable, such as `let control_fd: u32`. The compiled filter has a \
         placeholder for its value, so it is not a complete program. Either bind all variables, or generate \
         source code with a function that binds them when the filter is installed.";
}
