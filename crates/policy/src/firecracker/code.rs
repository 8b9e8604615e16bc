//! TM08xx: filters of Firecracker and the seccompiler library.

tamis_diag::codes! { FIRECRACKER;
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
    FIRECRACKER_LOST_RULE = "TM0809", "rule without conditions is dropped",
        "A rule without `args` matches every use of the call, but only if no other rule for the call has \
         conditions. Otherwise the seccompiler library keeps only the rules with conditions, and calls that \
         match none of them get the mismatch action. tamis does the same. Firecracker's own compiler gives \
         precedence to the rule without conditions. Delete one or the other.";
    FIRECRACKER_CUT = "TM0810", "constant is truncated to 32 bits",
        "A condition of type dword compares the lower 32 bits of the argument with the lower 32 bits of the \
         constant; masks have 32 bits too. This constant or mask has more bits, which are ignored. A mask \
         whose lower 32 bits are zero makes a condition that always holds; that is an error.";
    FIRECRACKER_THREAD = "TM0811", "thread not selected",
        "A file has one filter per thread, such as vmm, api and vcpu, and a program is compiled from one \
         filter. `--thread NAME` selects it; a file with one filter needs no selection.";
    FIRECRACKER_LIMIT = "TM0812", "filter beyond a limit",
        "The filter has more rules than the limit of tamis. The limit is far above real filters and above \
         what the kernel accepts as a program; it keeps hostile input from exhausting memory.";
}
