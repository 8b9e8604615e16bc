//! TM04xx: compiling.

codes! { COMPILE;
    PROGRAM_TOO_LONG = "TM0401", "the program would be too long",
        "The kernel takes at most 4096 instructions per filter (BPF_MAXINSNS). The message names the \
         system calls whose conditions take most instructions, and the rules they come from. Conditions \
         over many values of several arguments are the usual reason: values of one argument cost little, \
         combinations multiply. Several filters may be installed on one task; the most restrictive \
         answer wins, so a policy can be split into one that denies some calls and one that denies others.";
    MIXED_BYTE_ORDER = "TM0402", "architectures of both byte orders",
        "A filter reads 64-bit arguments as two 32-bit words, and which of the two comes first depends on \
         the byte order of the machine. A program is made for one byte order. No machine runs programs \
         of both, so a policy that covers both is compiled twice.";
    CONDITION_TOO_DEEP = "TM0403", "a condition nests too deeply",
        "Conditions may nest 512 levels deep. Lists of alternatives may have any length, so a deep \
         condition is nearly always a list that was written as `a or (b or (c or ...))`.";
    UNPROVEN = "TM0404", "the program could not be proved",
        "Every compilation ends with a proof that the program answers every possible call as the policy \
         says. The proof needs room that grows with the number of ways in which conditions on different \
         arguments combine; past a limit tamis gives up and withholds the program rather than give one \
         out unproved. Real policies stay a thousand times below the limit.";
    UNBOUND_VARIABLE = "TM0405", "a variable is not bound",
        "The policy declares a run-time variable, such as `let control_fd: u32`. The compiled filter has a \
         hole where its value belongs, so it can't be written as a complete program. Either give all \
         variables their values, or let tamis write source code with a function that binds them when the \
         filter is installed.";
    VARIABLE_USE = "TM0406", "a variable is used in a way that no instruction has",
        "A filter compares a word of the call with the constant in an instruction, and a variable is such a \
         constant. So a variable can be compared with an argument that is at least as wide, on one side of \
         `==`, `!=`, `<`, `<=`, `>` or `>=`; it can't be masked, nor compared with another variable or a \
         constant.";
}
