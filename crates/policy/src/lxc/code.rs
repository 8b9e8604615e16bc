//! TM18xx: policies of LXC.

tamis_diag::codes! { LXC;
    LXC_HEADER = "TM1801", "no header of an LXC policy",
        "The first line is the version, 1 or 2, and the second `allowlist` or `denylist`, before 2020 `whitelist` or \
         `blacklist`, in version 2 with the action for calls without a rule. Version 1 has only allow lists, of numbers.";
    LXC_RULE = "TM1802", "malformed rule of an LXC policy",
        "A line is `CALL ACTION [INDEX,VALUE,OPERATOR,MASK]`, with single spaces: `ioctl errno 1 [1,0x5412,==]`. Actions \
         are `kill`, `errno N`, `trap`, `allow` and `notify`; a line with conditions needs one. Operators are `==`, `!=`, \
         `<`, `<=`, `>`, `>=` and `&=`, or libseccomp's `SCMP_CMP_EQ` and so on; the mask belongs to `&=` alone.";
    LXC_SYSCALL = "TM1803", "unknown system call in an LXC policy",
        "No architecture of the policy has a call of this name, so LXC ignores the line and starts the container without \
         it. Comments begin in the first column, and nothing but a space ends a name.";
    LXC_ARCH = "TM1804", "unknown architecture in an LXC policy",
        "A line in brackets names an architecture, such as `[x86_64]`, `[arm64]` or `[all]`, in lower or upper case. LXC \
         refuses a policy with another name.";
    LXC_REFUSED = "TM1805", "rule that libseccomp refuses",
        "LXC adds each rule exactly as it stands, and starts no container if libseccomp refuses one: a rule with the \
         action of calls without a rule, two conditions on one argument, or another action for the same call and \
         conditions.";
    LXC_SECTION = "TM1806", "section that doesn't restrict its rules",
        "LXC skips the sections of other machines, and adds the rules of all others for every architecture of the \
         machine: in `[x86]`, a rule holds for x86_64 and x32, too.";
    LXC_MULTIPLEXED = "TM1807", "rule without effect on an architecture",
        "32-bit x86 makes the calls of sockets and of System V's interprocess communication by `socketcall` and `ipc`, too. \
         LXC adds no rule for such a call there, so that it is allowed or denied like calls without a rule.";
}
