//! TM00xx: reading input.

codes! { INPUT;
    FILE_TOO_LARGE = "TM0001", "file too large",
        "Policies and programs are small; tamis refuses to read more than a fixed limit so that a wrong \
         path does not fill the memory. Check that the path is the one you meant.";
    NOT_UTF8 = "TM0002", "text is not UTF-8",
        "Policy languages are UTF-8 text. The label shows the first byte that is not. A raw program is \
         recognised by its form; use --from to force a kind.";
    NOT_A_CALL = "TM0003", "not a system call",
        "A call is written `[ARCH] NAME(ARGUMENTS)`: `x86_64 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC)`, \
         `openat(flags=O_RDONLY)`, `x86 102(1)`. Missing arguments are 0, `@0x401000` adds an instruction \
         pointer. Names are those of the architecture; `tamis tables` lists them.";
    WRONG_KIND = "TM0004", "input of another kind",
        "The text was read as one language or form and looks like another, because of its name's extension \
         or because --from says so. Mistakes against the wrong language would only mislead, so none are \
         shown. `--from` names the kind; without it, extension and content decide.";
}
