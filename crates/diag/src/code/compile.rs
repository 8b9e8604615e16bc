//! TM04xx: compiling.

codes! { COMPILE;
    PROGRAM_TOO_LONG = "TM0401", "the program would be too long",
        "The kernel takes at most 4096 instructions per filter. The message names the rules that \
         contribute most.";
}
