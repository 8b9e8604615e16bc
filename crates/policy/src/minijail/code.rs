//! TM09xx: minijail policies.

tamis_diag::codes! { MINIJAIL;
    MINIJAIL_SYNTAX = "TM0901", "syntax error in a minijail policy",
        "A line is a comment after `#`, a directive (`@include`, `@frequency`, `@default`, `@denylist`), or \
         `CALL: FILTER`, where a filter is an action or conditions such as `arg0 == 1 && arg1 in 0x3`. A \
         backslash at the end continues the line. Parsing skips the line with the error and continues with \
         the next.";
    MINIJAIL_NUMBER = "TM0902", "malformed number",
        "Numbers are written as in C: decimal, hexadecimal with prefix 0x, octal with prefix 0, optionally \
         with a minus sign. They must fit the registers of the architecture, an errno 16 bits. `08` is \
         rejected, because one of minijail's parsers reads it as 0 and the other as 8.";
    MINIJAIL_CONSTANT = "TM0903", "unknown constant",
        "The name is not a kernel constant on this architecture. Minijail takes constants from a table \
         generated from system headers; tamis has its own table, listed by `tamis tables constants`.";
    MINIJAIL_SYSCALL = "TM0904", "unknown system call",
        "A line names a call that the architecture doesn't have, and minijail refuses such policies. A call \
         of another architecture can be written `NAME[arch=ARCH]`: the line then applies to that \
         architecture only.";
    MINIJAIL_ARCH = "TM0905", "unknown architecture or qualifier",
        "A qualifier after a call is `[arch=NAME,NAME]`. Minijail's names are x86, arm64 and loong64, not \
         i386, aarch64 and loongarch64. An unknown name would silently disable the line, so it is an \
         error.";
    MINIJAIL_ARGUMENT = "TM0906", "no such argument",
        "System calls have six arguments, `arg0` to `arg5`; a filter cannot see more.";
    MINIJAIL_ACTION = "TM0907", "unknown or misplaced action",
        "Actions are `allow` or `1`, `kill`, `kill-process`, `kill-thread`, `trap`, `trace`, `log`, \
         `user-notify` and `return ERRNO`. `@default` takes only those that deny the call; in a deny list \
         every action is `return ERRNO`.";
    MINIJAIL_CYCLE = "TM0909", "files include each other",
        "A file includes itself, directly or through others, so parsing would never end. Remove one of the \
         includes.";
    MINIJAIL_LIMIT = "TM0910", "policy beyond a limit",
        "The nesting depth or the number of included files or rules exceeds a limit of tamis. The limits are \
         far above real policies; they keep hostile input from exhausting memory.";
    MINIJAIL_TWICE = "TM0911", "call already decided",
        "An earlier line decides every such call, so this one has no effect; minijail rejects the policy. In \
         the dialect of minijail's library a call has one line. Delete a line, or put the one without \
         conditions last.";
    MINIJAIL_DIALECT = "TM0912", "line with opposite meanings in the two dialects",
        "Minijail has two parsers for this language. In the library (`minijail0 -S`) `arg0 == 1; return \
         EPERM` allows calls that satisfy the condition and returns EPERM for others; in the compile tool \
         (`compile_seccomp_policy.py`) it returns EPERM for those that satisfy it, and others get the \
         default action. tamis follows the compile tool; `--dialect c` or `--dialect python` selects the \
         meaning. The option is required if the default action executes calls, such as `log`: then neither \
         meaning is the stricter one. `{ arg0 == 1, return EPERM }` always has the first meaning in the \
         compile tool.";
    MINIJAIL_NOT_IN_DIALECT = "TM0913", "not in this dialect",
        "The dialect of minijail's library (`--dialect c`) has no groups in braces, qualifiers in brackets, \
         `@default`, `@denylist`, comments at the end of a line or actions other than `1`, `allow` and \
         `return`; an included file cannot include another, and there is no default action. The library \
         rejects such a policy.";
    MINIJAIL_DENYLIST = "TM0914", "deny list without `--denylist`, or mixed with an allow list",
        "A file with `@denylist` allows every call that it doesn't name, so it needs `--denylist`, and \
         `--denylist` accepts no other file: minijail's tool has the same rule. Files included by a deny \
         list must have `@denylist` too, `@default` is not allowed in it, and an allow list cannot include a \
         deny list.";
    MINIJAIL_GROUP = "TM0915", "unknown group of calls",
        "`group@namespace` denotes a list of calls in a table of minijail's tool. The policy does not \
         contain that list. Pass the table, `--arch-json constants.json`, or list the calls in braces.";
    MINIJAIL_EMPTY = "TM0916", "policy without rules",
        "No line applies to a call of this architecture, so every call gets the default action: usually the \
         file or the architecture is wrong.";
    MINIJAIL_TABLE = "TM0917", "error in minijail's table",
        "The file of `--arch-json` is the JSON input of minijail's tool: `arch_nr`, `arch_name` and `bits` \
         of one architecture, its `syscalls` and `constants` by name, and optionally `syscall_groups`, lists \
         of calls by namespace and group. With a table only its names are known, and the filter is for its \
         architecture.";
}
