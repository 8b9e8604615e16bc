//! TM13xx: policies written in other languages.

codes! { EXPORT;
    EXPORT_CONDITION = "TM1301", "condition that the language cannot say",
        "The policy answers these calls by a condition that the language has no words for: it looks at the \
         instruction pointer, compares arguments with each other, or would take too many entries; systemd's \
         lists have no conditions at all. What is written instead is at least as strict: the ways to meet \
         the condition that can be said, or for all arguments the strictest of the answers.";
    EXPORT_ARCHES = "TM1302", "architectures that the language cannot tell apart",
        "OCI profiles and systemd's lists name calls and say the same of all architectures. Where the policy \
         treats a call differently on one of them, the strictest of the answers is written for all. An export \
         for one architecture, `--arch`, loses nothing by this.";
    EXPORT_NUMBERS = "TM1303", "numbers without a name",
        "The policy has rules about numbers that no call has, or treats them differently on different \
         architectures. Languages that name calls say one thing of all other numbers; the strictest of the \
         answers is written.";
    EXPORT_ACTION = "TM1304", "action that the language cannot say",
        "The language lacks an action, or the data that go with it: systemd knows killing, an errno, logging \
         and letting through, OCI profiles give numbers to ERRNO and TRACE only. The nearest action that is \
         as strict is written.";
    EXPORT_FOREIGN = "TM1305", "answer to other architectures",
        "What happens to calls of architectures that it does not name is no part of the language: container \
         runtimes and systemd kill the thread that makes one. The policy says something else. Such calls are \
         not executed.";
    EXPORT_MULTIPLEXED = "TM1306", "calls made by way of others",
        "On 32-bit x86 and a few other architectures sockets and System V IPC can be had by `socketcall` and \
         `ipc` as well. An entry for `socket` applies to both ways in OCI profiles and systemd's lists, while \
         the policy answers them differently. What is written is at least as strict.";
    EXPORT_INSTALLATION = "TM1307", "flags and listener",
        "The policy says with which flags its filter is to be installed, or where a supervisor listens. What is \
         made of it has no words for that, be it a program or a policy in another language; whoever installs the \
         filter has to know it.";
    EXPORT_REFUSED = "TM1308", "policy that cannot be exported",
        "Nothing could be written that is at least as strict as the policy, or the policy cannot be taken \
         apart call by call within the limits. Nothing is written then: an export that lets through what the \
         policy denies would be worse than none.";
    EXPORT_READ_BACK = "TM1309", "call that is read in another way",
        "The text was read back and compared with the policy, and these calls are answered otherwise although \
         every word of the language was there: what the language makes of several entries, or of one entry on \
         several architectures, is not what the policy says. What is written is at least as strict.";
}
