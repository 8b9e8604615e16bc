//! TM00xx: reading input.

codes! { INPUT;
    FILE_TOO_LARGE = "TM0001", "file too large",
        "Policies and programs are small; tamis refuses to read more than a fixed limit so that a wrong \
         path does not fill the memory. Check that the path is the one you meant.";
    NOT_UTF8 = "TM0002", "text is not UTF-8",
        "Policy languages are UTF-8 text. The label shows the first byte that is not. A raw program is \
         recognised by its form; use --from to force a kind.";
}
