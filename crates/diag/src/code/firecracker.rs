//! TM08xx: filters of Firecracker and the seccompiler library.

codes! { FIRECRACKER;
    FIRECRACKER_JSON = "TM0801", "not valid JSON",
        "Firecracker's filters are strict JSON, a few levels deep: no comments (there is a member \
         `comment`), no trailing commas, no hexadecimal numbers.";
    FIRECRACKER_DUPLICATE = "TM0802", "given twice",
        "An object has a key twice, or one member under both of its names, such as `mismatch_action` and \
         `default_action`. The seccompiler library refuses that, and it would hide one of the two.";
    FIRECRACKER_TYPE = "TM0803", "value of the wrong type",
        "The member exists, but its value has another JSON type than it must have, for instance a string \
         where a number is needed. A file is an object with a member for each thread; its value has \
         `mismatch_action`, `match_action` and the list `filter`.";
    FIRECRACKER_MEMBER = "TM0804", "unknown or missing member",
        "The seccompiler library refuses members that it doesn't know, because a misspelt `args` would turn \
         a rule with conditions into one without. A rule needs `syscall`, a condition `index`, `type`, `op` \
         and `val`. A list `args` cannot be empty: a rule for all calls has none.";
    FIRECRACKER_NAME = "TM0805", "unknown action, operator or type",
        "Actions are allow, trap, log, kill_thread and kill_process, or an object such as {\"errno\": 1} or \
         {\"trace\": 7}. Operators are eq, ne, lt, le, gt and ge, or {\"masked_eq\": MASK}. Types are dword \
         and qword.";
    FIRECRACKER_SYSCALL = "TM0806", "unknown system call",
        "A rule names a call that the architecture of the filter doesn't have. The seccompiler library \
         refuses such files, whichever thread is asked for; a file is for one architecture.";
    FIRECRACKER_RANGE = "TM0807", "number out of range",
        "Numbers are non-negative decimal integers: `index` is 0 to 5, `val` and masks have 64 bits, the \
         numbers of errno and trace 16.";
    FIRECRACKER_CONTRADICTION = "TM0808", "both actions are the same",
        "A filter answers a call with one action if a rule matches and with the other if none does. If they \
         are the same, the rules say nothing; the seccompiler library refuses such a filter.";
    FIRECRACKER_LOST_RULE = "TM0809", "rule without conditions is lost",
        "A rule without `args` stands for all calls, but only if no other rule for the call has conditions: \
         the seccompiler library then keeps those alone, and calls that meet none of them get the \
         mismatch action. tamis does the same. Firecracker's own compiler lets the rule without conditions \
         win. Delete one or the other.";
    FIRECRACKER_CUT = "TM0810", "constant is cut to 32 bits",
        "A condition of type dword compares the lower 32 bits of the argument with the lower 32 bits of the \
         constant, and masks have as many. This constant or mask has more, so the comparison is another one than \
         it seems. If nothing is left of a mask the condition would always hold; that is an error.";
    FIRECRACKER_THREAD = "TM0811", "which thread's filter",
        "A file has a filter for each of several threads, such as vmm, api and vcpu, and a program is made \
         of one. `--thread NAME` chooses it; a file with one filter needs no choice.";
    FIRECRACKER_LIMIT = "TM0812", "filter beyond a limit",
        "The filter has more rules than tamis takes: a bound far beyond real filters and what the kernel \
         takes as a program, which keeps hostile input from using up memory.";
}
