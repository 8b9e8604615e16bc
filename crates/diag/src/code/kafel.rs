//! TM10xx: kafel policies.

codes! { KAFEL;
    KAFEL_SYNTAX = "TM1001", "syntax error in a kafel policy",
        "A policy consists of `POLICY name { … }`, blocks such as `ALLOW { read, write { fd == 1 } }`, `USE \
         name`, `DEFAULT action`, `#define NAME NUMBER` and `#include \"file\"`. Rules and blocks within \
         braces have commas between them, and none behind the last. What has a mistake is left out, and \
         reading goes on behind it.";
    KAFEL_NUMBER = "TM1002", "malformed number",
        "Numbers are decimal, perhaps negative, hexadecimal behind `0x`, octal behind `0` or binary behind \
         `0b`, and have at most 64 bits. An errno or other number of an action has 16 bits, the number of a \
         call 32.";
    KAFEL_SYSCALL = "TM1003", "unknown system call",
        "A rule names a call that the architecture does not have, and kafel refuses such policies. Names are \
         those of the kernel's functions - `newstat`, `newuname` - or those that programs use. A rule for \
         some architectures only is written `call ON x86_64`, a call without a name `SYSCALL[400]`.";
    KAFEL_ARCH = "TM1004", "unknown architecture",
        "Behind `ON` stand the architectures that a rule is for. One that does not exist would make the rule \
         vanish without a word, so it is an error.";
    KAFEL_ARGUMENT = "TM1005", "no such argument",
        "A condition names an argument that the call does not have, or that a filter cannot see. Arguments \
         have the names of the kernel's declarations, as in the manual pages for the most part; a rule may \
         give its own: `write(out, data) { out == 1 }`. Kafel knows no constants of the kernel, only those \
         that `#define` gives.";
    KAFEL_ACTION = "TM1006", "unknown action",
        "Actions are `ALLOW`, `LOG`, `KILL`, `KILL_THREAD` and `DENY`, which mean the same, `KILL_PROCESS`, \
         `USER_NOTIF`, `ERRNO(n)`, `TRAP(n)` and `TRACE(n)`, in capitals.";
    KAFEL_POLICY = "TM1007", "unknown policy",
        "`USE` names a policy that stands above it in the text or in a file that is included above it. A \
         policy cannot use itself or a later one.";
    KAFEL_TWICE = "TM1008", "defined twice",
        "A name stands for one policy or one value, and there is one default action. Two definitions of a \
         constant with one value are fine.";
    KAFEL_INCLUDE = "TM1009", "file cannot be included",
        "A file that the policy includes is missing, unreadable, not UTF-8, or includes itself. Paths are \
         relative to the file that names them; kafel looks in the folders that its caller gives.";
    KAFEL_LIMIT = "TM1010", "policy beyond a limit",
        "The policy is nested more deeply, includes more files or makes more rules or tests than tamis takes: \
         bounds far beyond real policies, which keep hostile input from using up memory.";
    KAFEL_WIDTH = "TM1011", "more bits compared than the argument has",
        "Kafel compares 32 bits of an argument whose C type has no more, unless something else in the \
         comparison has 64: an argument of that type, or a number such as -1, which is \
         0xffffffffffffffff. Then the upper half of the narrow argument counts, which the kernel ignores and \
         the caller chooses: `fd == -1` can be made false, `fd != -1` true, at will.";
    KAFEL_COMMENT = "TM1012", "comment that kafel reads on",
        "Kafel takes the stars in a comment in pairs, so that `**/` does not end it for kafel, and what \
         follows is part of the comment up to the next `*/`. tamis ends it, as C does. Put a blank before \
         `*/` and both agree.";
    KAFEL_EMPTY = "TM1013", "policy that says nothing",
        "There is neither a block nor a `USE` nor a `DEFAULT` outside of the policies with names, so every \
         call is killed. Policies with names count only where they are used.";
    KAFEL_LONG = "TM1014", "comparison of joined values",
        "A filter loads one word of the call after the other and compares it with a number or with another word. \
         Values that are joined from several arguments, as in `(a & b) <= c`, are compared bit by bit instead, \
         which is correct and long: some instructions for each bit and argument, up to the kernel's limit of \
         4096. Often single comparisons say what is meant, or a mask on each side: `(a & 0xff) <= 5`.";
}
