//! TM13xx: exporting policies to other languages.

pub use tamis_policy::code::*;

tamis_diag::codes! { EXPORT;
    EXPORT_CONDITION = "TM1301", "condition not expressible in the target language",
        "The condition on these calls cannot be expressed in the target language: it tests the instruction \
         pointer, compares arguments with each other, or needs too many entries. systemd's lists have no \
         conditions at all. The output is at least as strict: it contains the expressible part of the \
         condition, or the strictest of the actions for all arguments.";
    EXPORT_ARCHES = "TM1302", "architectures not distinguished in the target language",
        "Entries of OCI profiles and systemd's lists apply to all architectures. Where the policy treats a \
         call differently on one of them, the output has the strictest of the actions for all. An export for \
         one architecture (`--arch`) loses nothing.";
    EXPORT_NUMBERS = "TM1303", "system-call numbers without a name",
        "The policy has rules for numbers that belong to no system call, or treats them differently on \
         different architectures. Languages that name calls have one action for all other numbers; the \
         output has the strictest of the actions.";
    EXPORT_ACTION = "TM1304", "action not available in the target language",
        "The target language lacks an action, or its data: systemd has kill, errno, log and allow; OCI \
         profiles have data for ERRNO and TRACE only. The output has the nearest action that is as strict.";
    EXPORT_FOREIGN = "TM1305", "action for other architectures",
        "The target language cannot set the action for calls of architectures that it does not name: \
         container runtimes and systemd kill the thread that makes one. The policy has another action. Such \
         calls are not executed.";
    EXPORT_MULTIPLEXED = "TM1306", "calls reached through a multiplexer",
        "On 32-bit x86 and a few other architectures, `socketcall` and `ipc` also provide sockets and System \
         V IPC. In OCI profiles and systemd's lists an entry for `socket` is for both paths, and the policy does \
         something else on one of them. The output does the stricter of the two on both.";
    EXPORT_REFUSED = "TM1308", "policy that cannot be exported",
        "No text in the target language is at least as strict as the policy, or the policy cannot be split \
         by system call within the limits. There is no output then: an export that allows what the policy \
         denies would be worse than none.";
    EXPORT_READ_BACK = "TM1309", "call with another meaning in the target language",
        "The output was parsed again and compared with the policy. These calls differ although each \
         condition and action is expressible: the target language combines several entries, or applies one \
         entry to several architectures, in a way that the policy does not. The output is at least as \
         strict.";
    EXPORT_UNKNOWN = "TM1310", "calls that the target does not know",
        "Since systemd 256 a list of allowed calls returns ENOSYS for calls that this systemd does not know, whatever \
         SystemCallErrorNumber= says. The policy has another action for numbers without a name. Such calls are not executed \
         either way, but a process that would be killed goes on.";
    EXPORT_LOST = "TM1311", "call that the result denies as a whole",
        "The policy allows the call, perhaps for some arguments, and the text in the target language denies it whatever its \
         arguments are: the language can't express the condition, and what it writes instead is never looser. \
         Of a call that programs can't do without - each makes it to start or to end, or nearly each in every run - that is \
         an error, and nothing is written: a service under the result would not start. `--allow-losses` writes it all \
         the same.";
}
