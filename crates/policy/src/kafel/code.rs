//! TM10xx: kafel policies.

tamis_diag::codes! { KAFEL;
    KAFEL_SYNTAX = "TM1001", "syntax error in a kafel policy",
        "A policy consists of `POLICY name { … }`, blocks such as `ALLOW { read, write { fd == 1 } }`, `USE \
         name`, `DEFAULT action`, `#define NAME NUMBER` and `#include \"file\"`. Rules and blocks within \
         braces are separated by commas, without one after the last. Parsing skips the part with the error \
         and continues after it.";
    KAFEL_NUMBER = "TM1002", "malformed number",
        "Numbers are decimal (also negative), hexadecimal with prefix `0x`, octal with prefix `0` or binary \
         with prefix `0b`, and have at most 64 bits. An errno or other data of an action has 16 bits, a \
         system-call number 32.";
    KAFEL_SYSCALL = "TM1003", "unknown system call",
        "A rule names a call that the architecture does not have, and kafel refuses such policies. Names are \
         those of the kernel's functions (`newstat`, `newuname`), not those of user space. Write a rule for \
         some architectures only as `call ON x86_64`, and a call without a name as `SYSCALL[400]`.";
    KAFEL_ARCH = "TM1004", "unknown architecture",
        "`ON` is followed by the architectures that a rule applies to. An unknown architecture would \
         silently disable the rule, so it is an error, and kafel takes none twice.";
    KAFEL_ARGUMENT = "TM1005", "no such argument",
        "A condition names an argument that the call does not have, or that a filter cannot see. Arguments \
         have kafel's names, those of the kernel's declarations and mostly of the manual pages. A rule may \
         rename them: `write(out, data) { out == 1 }`. Kafel has no built-in constants of the kernel, only \
         those of `#define`.";
    KAFEL_ACTION = "TM1006", "unknown action",
        "Actions are `ALLOW`, `LOG`, `KILL` (synonyms: `KILL_THREAD`, `DENY`), `KILL_PROCESS`, \
         `USER_NOTIF`, `ERRNO(n)`, `TRAP(n)` and `TRACE(n)`, in capitals.";
    KAFEL_POLICY = "TM1007", "unknown policy",
        "`USE` names a policy defined above it, in the same text or in a file included above it. A \
         policy cannot use itself or a later one.";
    KAFEL_TWICE = "TM1008", "defined twice",
        "A name denotes one policy or one value, and there is one default action. A constant may be defined \
         twice with the same value.";
    KAFEL_INCLUDE = "TM1009", "file cannot be included",
        "A file that the policy includes is missing, unreadable, not UTF-8, or includes itself. Paths are \
         relative to the including file; kafel itself searches the directories given by its caller.";
    KAFEL_LIMIT = "TM1010", "policy beyond a limit",
        "The nesting depth or the number of included files, rules or tests exceeds a limit of tamis, or a \
         comparison is larger than kafel compiles. The limits are far above real policies; they keep hostile input from exhausting memory.";
    KAFEL_WIDTH = "TM1011", "comparison wider than the argument",
        "Kafel compares 32 bits of an argument whose C type has 32 bits, unless another operand has 64: a \
         64-bit argument, or a number such as -1, which is 0xffffffffffffffff. Then the comparison includes \
         the upper half of the narrow argument, which the kernel ignores and the caller controls: a caller \
         can make `fd == -1` false and `fd != -1` true.";
    KAFEL_COMMENT = "TM1012", "comment that kafel does not end here",
        "Kafel consumes the stars in a comment in pairs, so `**/` does not end it, and the following text is \
         part of the comment up to the next `*/`, for tamis as well. Put a space before `*/` to end it.";
    KAFEL_EMPTY = "TM1013", "policy without rules",
        "Outside of named policies there is no block, `USE` or `DEFAULT`, so every call is killed. Named \
         policies have an effect only where they are used.";
    KAFEL_LONG = "TM1014", "comparison of a value computed from several arguments",
        "A filter compares single words of the call with a number or with another word. Values computed from \
         several arguments, as in `(a & b) <= c`, are compared bit by bit, which is correct but long: \
         several instructions per bit and argument, up to the kernel's limit of 4096. Separate comparisons \
         or a constant mask, such as `(a & 0xff) <= 5`, are often sufficient.";
    NSJAIL_SYNTAX = "TM1015", "syntax error in a configuration of nsjail",
        "A configuration is protocol buffers as text: fields such as `seccomp_string: \"…\"`, messages in \
         braces, lists in brackets. A string ends in its line; nsjail ends each `seccomp_string` with a line \
         feed, but joins strings of one field without anything between them.";
    NSJAIL_POLICY = "TM1016", "not one policy in a configuration of nsjail",
        "nsjail takes the policy of `seccomp_string`, or of the file that `seccomp_policy_file` names, and \
         refuses both. Without either it installs no filter, so there is nothing to compile.";
}
