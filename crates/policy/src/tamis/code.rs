//! TM02xx: the tamis language.

tamis_diag::codes! { TAMIS;
    UNKNOWN_SYSCALL = "TM0201", "unknown system call",
        "No architecture of the tables has a call with this name. A misspelt name must not silently allow \
         or deny nothing, so it is an error. A call that is newer than the tables can be named by number, \
         inside a block for one architecture: `on x86_64 { allow nr 470 }`.";
    TAMIS_SYNTAX = "TM0202", "syntax error",
        "The text does not follow the grammar of the tamis language at the place shown. Parsing skips the \
         statement and continues at the next line that begins with a statement keyword, so several errors \
         are reported in one run. The grammar is in docs/book/language.md.";
    BAD_NUMBER = "TM0203", "malformed number",
        "Numbers are decimal (`42`), hexadecimal (`0x2a`), octal (`0o52`) or binary (`0b101010`), up to 64 \
         bits; `_` may stand between digits. A leading 0 is rejected because C reads it as octal and people \
         read it as decimal.";
    UNKNOWN_ARCH = "TM0204", "unknown architecture",
        "Architectures are named as the kernel's tools name them: x86_64, x86, x32, aarch64, arm, riscv64 \
         and so on; common aliases such as amd64 and arm64 are accepted.";
    UNKNOWN_CONSTANT = "TM0205", "unknown constant",
        "The name is neither defined by a `let` above its use nor a constant of the kernel's interface. \
         Constants are looked up for each architecture that the rule applies to, because values differ; a \
         constant that one of them lacks can be used in an `on` block for the others. Any value can also \
         be written as a number.";
    UNKNOWN_ARGUMENT = "TM0206", "unknown argument",
        "Arguments are named as the kernel names them in the definition of the call, or by position: \
         `arg0` to `arg5`, `arg[0]` to `arg[5]`. Where the kernel itself uses a name such as `arg2` for \
         another position (prctl's arg2 is its second argument), that name is refused and the position \
         is written with brackets.";
    UNKNOWN_SET = "TM0207", "unknown set of system calls",
        "Sets are built in (`@basic-io`, `@network-io`, … listed in docs/book/language.md) or defined by a \
         `set` statement above their first use.";
    STATED_TWICE = "TM0208", "stated twice",
        "A policy has one `arch`, one `bad-arch`, and for an architecture one `default` and one `unknown` at \
         the top and one in `on` blocks; a name is defined once. Two statements could contradict each other, \
         so the second is an error even if it is equal. The built-in sets cannot be redefined either.";
    VALUE_DOES_NOT_FIT = "TM0209", "value does not fit",
        "A constant is compared at the width at which the kernel reads the argument: an `int` has 32 bits \
         even where registers have 64. A constant with more bits could never be equal, so it is an error; \
         negative values are taken modulo the width. To compare other bits than the kernel reads, use \
         `full(x)`, `low(x)` or `high(x)`. Errno values go up to 4095, the data of `trap` and `trace` to \
         65535.";
    WIDTHS_DIFFER = "TM0211", "comparison of different widths",
        "Two arguments can be compared with each other if the kernel reads both at the same width. \
         Otherwise select the bits: `low(a) == low(b)`. Arguments of 16 bits are compared with \
         constants only.";
    INCLUDE_FAILED = "TM0212", "included file cannot be read",
        "The path is taken relative to the file that includes it. The message says why reading it failed.";
    INCLUDE_CYCLE = "TM0213", "files include each other",
        "A file may be included from several places (it is inserted once, at the first), but not from \
         itself, directly or through others.";
    TAMIS_LIMIT = "TM0214", "policy beyond a limit",
        "Source size, nesting, depth of includes and the number of rules are limited so that no input can \
         exhaust memory or time. The limits are far above real policies; a policy that exceeds one is \
         usually generated, and can use sets and ranges instead of repetition.";
    NUMBER_NEEDS_ARCH = "TM0215", "number without an architecture",
        "The same number is another call on another architecture. `nr` is allowed where exactly one \
         architecture applies: inside an `on` block, or if the policy has only one. On x32 numbers carry bit \
         30 (0x40000000), on x86_64 they don't.";
    CALL_NOT_ON_ARCH = "TM0216", "rule for a call that does not exist here",
        "The call exists on other architectures, but on none that this rule applies to, so the rule has no \
         effect. Calls that exist on some of them are accepted.";
    NOT_A_VALUE = "TM0219", "set in place of a value, or the reverse",
        "`==` and the other comparisons take one value; `in` takes a set in braces or the name of one. Sets \
         of system calls (`@name`) and sets of values (`let NAME = { … }`) are different things.";
    NUMBER_NOT_OF_ARCH = "TM0220", "number of another architecture",
        "x86_64 and x32 share an audit value and are told apart by bit 30 of the number: x32 has \
         0x40000000 to 0xfffffffe, x86_64 the rest.";
    ARCH_NOT_SELECTED = "TM0222", "block for an architecture that is not selected",
        "The `arch` statement of the policy does not name this architecture, so its calls get the `bad-arch` \
         action and the block has no effect.";
    SHADOWS_CONSTANT = "TM0223", "name hides a constant of the kernel",
        "The `let` redefines a name of the kernel's interface. The policy's definition takes precedence; a \
         reader may expect the kernel's.";
    EMPTY_POLICY = "TM0224", "empty policy",
        "There is no statement. An empty policy would kill the process on every call; more likely the \
         program that generates the policy failed. Write `default kill-process` for a filter that kills on \
         every call.";
    NO_RULES = "TM0225", "policy without rules",
        "The policy has neither a rule nor a `default`, so every call kills the process. Write `default \
         kill-process` if that is intended.";
    UPPER_HALF_IGNORED = "TM0226", "upper half on a 32-bit architecture",
        "A call of a 32-bit architecture has arguments of 32 bits, but a filter on a 64-bit kernel sees the \
         whole registers, and a 64-bit process that makes such a call (`int 0x80`) controls their upper \
         halves. A condition with `full(x)` or `high(x)` depends on them: a caller bypasses it by setting a \
         bit that the kernel ignores. Without `full` and `high` the lower half is compared.";
    ARCH_OVERRIDDEN = "TM0227", "architectures of the policy are replaced",
        "The policy has an `arch` statement and the caller asked for other architectures, for instance with \
         `--arch`. The caller's take precedence: calls of an architecture that only the policy names get the \
         `bad-arch` action.";
    UNKNOWN_PARAMETER = "TM0228", "unknown parameter",
        "A parameter is declared by `param NAME: VALUE | VALUE = DEFAULT` above its first use, and `--set \
         NAME=VALUE` selects a value. A misspelt name would silently leave the default in force, so it is \
         an error.";
    UNKNOWN_PARAMETER_VALUE = "TM0229", "unknown value of a parameter",
        "A parameter has one of the values that its declaration lists. A `when` block for any other value \
         would never count, and a filter for it cannot be compiled.";
    KNOWN_UNTIL = "TM0230", "`known-until` names no kernel",
        "`known-until linux 6.18` says which kernel's calls the policy has considered. Calls that came with a later \
         release, and numbers without a name, get ENOSYS unless a rule decides them, so programs fall back to older \
         calls. The version is a release of Linux, two numbers: calls come neither with a patch level nor with a \
         C library. A release that is newer than the tables is a warning: its calls are unknown numbers.";
}
