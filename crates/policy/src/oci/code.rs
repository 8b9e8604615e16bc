//! TM03xx: OCI and Docker seccomp profiles.

tamis_diag::codes! { OCI;
    JSON_SYNTAX = "TM0301", "not valid JSON",
        "An OCI profile is strict JSON: no comments, no trailing commas, no single quotes, no hexadecimal \
         numbers. Container engines refuse anything else, so tamis does too.";
    OCI_DUPLICATE_KEY = "TM0302", "duplicate key",
        "JSON leaves open what an object with the same key twice means; most parsers silently take the last. \
         In a security policy that hides one of the two, so it is an error. Delete one.";
    OCI_NESTING = "TM0303", "nested too deeply",
        "A seccomp profile has five levels of nesting, and a whole container configuration about ten. The \
         limit is far above that; it keeps hostile input from exhausting the stack.";
    OCI_TYPE = "TM0304", "value of the wrong type",
        "The member exists, but its value has another JSON type than the OCI runtime specification gives \
         it, for instance a string where a number is needed. `null` counts as absent.";
    OCI_MISSING = "TM0305", "required member is missing",
        "A profile needs `defaultAction`; each element of `syscalls` needs `names` with at least one name \
         and `action`; each condition needs `index`, `value` and `op`. In a container configuration the \
         profile is the object `linux.seccomp`.";
    OCI_UNKNOWN_MEMBER = "TM0306", "unknown member",
        "Container engines ignore members that they don't know, so a misspelt `args` turns a rule with \
         conditions into one without. It is a warning, and an error with --strict.";
    OCI_UNKNOWN_NAME = "TM0307", "unknown action, operator, architecture or flag",
        "The name is not in the OCI runtime specification. Names are case-sensitive and \
         written in full, such as SCMP_ACT_ERRNO, SCMP_CMP_MASKED_EQ, SCMP_ARCH_AARCH64.";
    OCI_UNKNOWN_SYSCALL = "TM0308", "unknown system call",
        "No architecture has a call of this name. Container engines ignore such names, because profiles list \
         calls that older libraries don't know. They ignore a misspelt name too, and the intended call gets \
         the default action. It is a warning, and an error with --strict.";
    OCI_RANGE = "TM0309", "number out of range",
        "Numbers in a profile are non-negative decimal integers: `index` is 0 to 5, `value` and `valueTwo` \
         have 64 bits, `errnoRet` is below 4095, the value that libseccomp refuses.";
    OCI_CONTRADICTION = "TM0310", "members that exclude each other",
        "`names` and the older `name`, or `architectures` and `archMap`, are synonyms; container engines \
         reject a profile with both. `listenerMetadata` without `listenerPath` has no effect and is a warning.";
    OCI_REPEATED_INDEX = "TM0311", "conditions on one argument are alternatives",
        "All conditions of an entry must hold, unless two of them test the same argument. libseccomp cannot \
         express that, so container runtimes add every condition of the entry as a separate rule: the entry \
         matches if *any* of them holds, which is nearly always more than intended. To require a range, \
         invert it: allow by default in the entry and deny below and above.";
    OCI_CONFLICT = "TM0312", "entries contradict each other",
        "Two entries with the same conditions on the same call have different actions, or one with more \
         conditions came first. libseccomp returns EEXIST and the container does not start. Delete one of \
         the entries, or put the one with fewer conditions first if it should take precedence.";
    OCI_TOO_COMPLEX = "TM0314", "too many combinations of conditions",
        "libseccomp merges the conditions of all entries for one call into one graph. The number of paths \
         through this one is above a fixed limit, far beyond what the kernel accepts as a program. Use fewer \
         conditions per call.";
    OCI_ENDLESS = "TM0315", "libseccomp does not accept this combination",
        "On 64-bit architectures libseccomp shares the tests that follow an inequality. Adding another \
         condition there can link a test to itself; libseccomp 2.5 and later then never return, so no \
         runtime can load this profile. Put the inequality on the argument with the highest index, or \
         write it as equalities.";
    OCI_BYTE_ORDER = "TM0316", "architectures of different byte order",
        "A filter reads arguments as the machine stores them, so one program cannot serve big- and \
         little-endian architectures. libseccomp refuses the combination.";
    OCI_UNKNOWN_CAPABILITY = "TM0317", "unknown capability",
        "The name in `includes` or `excludes` is not a Linux capability, so no container has it: the entry \
         is always dropped or never excluded. Names are written in full, such as CAP_SYS_ADMIN.";
    OCI_MEMBER_CASE = "TM0318", "member in the wrong case",
        "Container engines written in Go match JSON keys case-insensitively: `Args` is `args`, and of `args` \
         and `Args` the last has effect. Other engines ignore such a member. So the meaning of the profile \
         depends on the engine, and it is an error.";
    OCI_LOOSER = "TM0319", "libseccomp grants more than the entries say",
        "libseccomp merges the conditions of all entries for one call into one graph, and shares what follows an \
         inequality between the ways that lead there. So a call can get the action of an entry whose conditions \
         do not all hold; the note has such a call. tamis makes the filter that the runtime would make. Use \
         equalities and masks alone, or `--text` for the filter that the entries describe, and install that filter \
         instead of the runtime's.";
    OCI_RUNTIMES = "TM0320", "container runtimes disagree",
        "One container runtime runs such a profile, another refuses it, or reads it otherwise. tamis makes the \
         filter of those that run it; the warning names the others. It is an error with --strict.";
}
