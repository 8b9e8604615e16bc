//! What a diagnostic code is, and the codes of reading any input.
//!
//! A code is `TM` and four digits, grouped by hundred: 00 reading input, 01 programs and assembler,
//! 02 the tamis language, 03 OCI profiles, 04 compiling, 05 the ruleset text form, 06 profiles, 07 lint,
//! 08 Firecracker filters, 09 minijail policies, 10 kafel policies, 11 systemd units,
//! 12 resources of the security-profiles-operator, 13 exporting, 14 matrices of options, 15 extended BPF, 16 checks,
//! 17 combining. A number is never given a second meaning. Each crate declares its codes in a file `code.rs`, which re-exports those of the
//! crates below; the command's has all. [`Code::explanation`] is what `tamis explain TM0201` prints.

/// A stable name for one kind of diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// `TM0201`.
    pub id: &'static str,
    /// A short title.
    pub title: &'static str,
    /// The reason and the correction: a paragraph or more of plain text.
    pub explanation: &'static str,
}

/// Declares the codes of one group, and a constant that lists them.
///
/// ```
/// tamis_diag::codes! { COLOURS;
///     NO_COLOUR = "TM9901", "not a colour",
///         "A colour is one of red, green and blue.";
/// }
/// assert_eq!(COLOURS, [NO_COLOUR]);
/// ```
#[macro_export]
macro_rules! codes {
    ($list:ident; $($(#[$doc:meta])* $name:ident = $id:literal, $title:literal, $explanation:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("`", $id, "`: ", $title, ".")]
            pub const $name: $crate::Code = $crate::Code {
                id: $id,
                title: $title,
                explanation: $explanation,
            };
        )*
        /// All codes of this group, ascending.
        pub const $list: &[$crate::Code] = &[$($name),*];
    };
}

codes! { INPUT;
    FILE_TOO_LARGE = "TM0001", "file too large",
        "Policies and programs are small. tamis reads at most a fixed number of bytes, so that a wrong path \
         does not exhaust memory. Check the path.";
    NOT_UTF8 = "TM0002", "text is not UTF-8 without a byte order mark",
        "Policy languages are UTF-8 text. The label shows the first invalid byte. A raw program is detected \
         by its format; use --from to set the kind. Container runtimes, Firecracker, minijail and kafel refuse a \
         file that begins with a byte order mark, so tamis does, too; systemd ignores it.";
    NOT_A_CALL = "TM0003", "not a system call",
        "A call is written `[ARCH] NAME(ARGUMENTS)`: `x86_64 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC)`, \
         `openat(flags=O_RDONLY)`, `x86 102(1)`. Missing arguments are 0, `@0x401000` adds an instruction \
         pointer. Names are those of the architecture; `tamis tables` lists them.";
    WRONG_KIND = "TM0004", "input of another kind",
        "The text was parsed as one language or format, because of its file extension or because of --from, \
         but looks like another, or like none that tamis reads. Errors from the wrong parser would mislead, so \
         at most the first is shown. `--from` sets the kind; without it, extension and content decide.";
    UNKNOWN_OPTION = "TM0005", "no such option of the language",
        "Each policy language declares its options, and an option is only accepted for a policy in a language \
         that has it: an option without effect would hide a mistake. `tamis tables options` lists the options \
         by language; `--from` sets the language if the wrong one was detected.";
    OPTION_VALUE = "TM0006", "not a value of the option",
        "An option is written NAME=VALUE; a switch needs no value, a list has commas between its items or is \
         repeated. Every other option has one value. `tamis tables options` lists the values.";
}
