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
}
