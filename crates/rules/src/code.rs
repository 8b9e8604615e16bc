//! TM05xx: the text form of rulesets, and what readers and lint both find in rules.

pub use tamis_diag::code::*;

tamis_diag::codes! { RULESET;
    RULESET_SYNTAX = "TM0501", "not a ruleset",
        "The text form of a ruleset is what `tamis compile --emit rules` prints.";
}

tamis_diag::codes! { MEANING;
    CONSTANT_CONDITION = "TM0210", "comparison that is always true or always false",
        "All comparisons are unsigned, so `x < 0` never holds and `x >= 0` always does; order against a \
         negative value compares with a huge positive one; a masked argument never equals a value with bits \
         outside the mask; a range that ends before it begins is empty. Such a condition is almost certainly \
         a mistake. Use `true` or `false` for a deliberately constant condition.";
    NEVER_MATCHES = "TM0217", "rule that never matches",
        "Rules are tried in the order of the text and the first that matches decides. An earlier rule \
         without a condition decides this call already. Put the exception before the general rule.";
    MULTIPLEXED_CALL = "TM0218", "rule bypassed through a multiplexer",
        "On some architectures, 32-bit x86 among them, `socketcall` and `ipc` multiplex many calls, with \
         arguments in memory, which a filter cannot read. A rule that restricts such a call has no effect \
         while the multiplexer is allowed. Restrict it too: `allow socketcall(call != SYS_SOCKET)`.";
    ALLOWS_UNKNOWN = "TM0221", "unknown calls are allowed",
        "`unknown` applies to numbers that are not in the tables of this version, which includes every call \
         that later kernels add. Allowing them allows calls that nobody has reviewed.";
    OCI_NO_EFFECT = "TM0313", "entry has no effect",
        "libseccomp does not take the first matching entry. An entry without conditions replaces all with \
         conditions on the same call, before or after it; of two without conditions the first wins; an entry \
         whose conditions contain those of another may be dropped. The calls get the other entry's action.";
    VARIABLE_USE = "TM0406", "unsupported use of a variable",
        "A filter compares a word of the call with the constant in an instruction, and a variable becomes \
         such a constant. So a variable can be compared with an argument that is at least as wide, on one \
         side of `==`, `!=`, `<`, `<=`, `>` or `>=`. It cannot be masked, or compared with another variable \
         or a constant.";
}
