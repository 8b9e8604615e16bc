//! TM09xx: minijail policies.

codes! { MINIJAIL;
    MINIJAIL_SYNTAX = "TM0901", "syntax error in a minijail policy",
        "A line is a comment after `#`, a directive (`@include`, `@frequency`, `@default`, `@denylist`), or \
         `CALL: FILTER`, where a filter is an action or conditions such as `arg0 == 1 && arg1 in 0x3`. A \
         backslash at the end continues the line. The line is left out and reading goes on with the next.";
    MINIJAIL_NUMBER = "TM0902", "malformed number",
        "Numbers are those of C: decimal, hexadecimal behind 0x, octal behind 0, perhaps with a minus sign. \
         They must fit the registers of the architecture, and an errno 16 bits. `08` is refused, because \
         one of minijail's readers takes it for 0 and the other for 8.";
    MINIJAIL_CONSTANT = "TM0903", "unknown constant",
        "The name is no constant of the kernel on this architecture. Minijail takes constants from a table \
         made of system headers; tamis from its own, which `tamis tables constants` lists.";
    MINIJAIL_SYSCALL = "TM0904", "unknown system call",
        "A line names a call that the architecture doesn't have, and minijail refuses such policies. A \
         call of another architecture can be written `NAME[arch=ARCH]`: the line is then for that only.";
    MINIJAIL_ARCH = "TM0905", "unknown architecture or qualifier",
        "In brackets behind a call stands `arch=NAME,NAME`. A name that minijail has not - it says x86, \
         arm64 and loong64, not i386, aarch64 and loongarch64 - would make the line vanish without a word, so it is \
         an error.";
    MINIJAIL_ARGUMENT = "TM0906", "no such argument",
        "System calls have six arguments, `arg0` to `arg5`; a filter cannot see more.";
    MINIJAIL_ACTION = "TM0907", "unknown or misplaced action",
        "Actions are `allow` or `1`, `kill`, `kill-process`, `kill-thread`, `trap`, `trace`, `log`, \
         `user-notify` and `return ERRNO`. `@default` takes only those that deny the call; in a deny list \
         every action is `return ERRNO`.";
    MINIJAIL_INCLUDE = "TM0908", "file cannot be read",
        "A file that the policy includes is missing, unreadable or not UTF-8. Paths are relative to the \
         file that names them, and begin with `/` or `./`. If a frequency file cannot be read the filter is \
         the same, only made without its counts, so that is a warning.";
    MINIJAIL_CYCLE = "TM0909", "files include each other",
        "A file includes itself, perhaps by way of others, so reading it would never end. Take one of the \
         includes out.";
    MINIJAIL_LIMIT = "TM0910", "policy beyond a limit",
        "The policy is nested more deeply, includes more files or makes more rules than tamis takes: bounds \
         far beyond real policies, which keep hostile input from using up memory.";
    MINIJAIL_TWICE = "TM0911", "call decided already",
        "An earlier line says what happens to every such call, so this one could never matter; minijail \
         refuses the policy. In the dialect of minijail's library a call has one line. Delete a line, or \
         put the one without conditions last.";
    MINIJAIL_DIALECT = "TM0912", "line that means opposite things",
        "Minijail has two readers of this language. To the library (`minijail0 -S`) `arg0 == 1; return \
         EPERM` allows calls that meet the condition and answers EPERM to others; to the compile tool \
         (`compile_seccomp_policy.py`) it answers EPERM to those that meet it, and others get the default. \
         tamis reads it as the compile tool does; `--dialect c` or `--dialect python` says which is meant, and \
         must if a default action such as `log` lets calls run: then no reading is the strict one. \
         `{ arg0 == 1, return EPERM }` can only mean the first, to the compile tool.";
    MINIJAIL_NOT_IN_DIALECT = "TM0913", "not in this dialect",
        "The dialect of minijail's library (`--dialect c`) has no groups in braces, qualifiers in brackets, \
         `@default`, `@denylist`, comments behind a line or actions other than `1`, `allow` and `return`, and \
         an included file cannot include another; nor does the library take a default action. It refuses such a \
         policy.";
    MINIJAIL_DENYLIST = "TM0914", "deny list not meant, or mixed with an allow list",
        "A file that says `@denylist` allows what it doesn't name, so it is read only with `--denylist`, and \
         with that nothing else is: minijail's tool asks for the same. The files that a deny list includes must \
         say so too, `@default` has no place in it, and an allow list cannot include one.";
    MINIJAIL_GROUP = "TM0915", "unknown group of calls",
        "`group@namespace` stands for a list of calls in the table that minijail's tool was given. A policy \
         alone does not say what is in it. Give the table, `--arch-json constants.json`, or list the calls in \
         braces.";
    MINIJAIL_EMPTY = "TM0916", "policy without rules",
        "No line is about a call of this architecture, so every call gets the default: usually the wrong \
         file, or the wrong architecture.";
    MINIJAIL_TABLE = "TM0917", "mistake in minijail's table",
        "The file behind `--arch-json` is the JSON that minijail's tool takes: `arch_nr`, `arch_name` and `bits` of one \
         architecture, its `syscalls` and `constants` by their names, and perhaps `syscall_groups`, which has \
         lists of calls by namespace and group. With a table its names are the only ones, and the filter is for its \
         architecture.";
}
