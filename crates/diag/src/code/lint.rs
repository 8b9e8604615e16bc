//! TM07xx: what `tamis lint` finds in a policy or program that is correct as such.

codes! { LINT;
    LINT_UNCHECKED_ARCH = "TM0701", "the architecture is never looked at",
        "The number of a system call means something only together with the architecture: 11 is munmap on \
         x86_64 and execve on 32-bit x86, which any 64-bit program can call with `int 0x80`. A filter that \
         looks at the number alone answers such calls as if they were other ones. Compare `arch` with the \
         architecture that the filter is for, first, and kill what is foreign; whatever tamis compiles does.";
    LINT_FOREIGN_ARCH = "TM0702", "calls of another architecture are allowed",
        "The filter looks at the architecture, but lets calls of those that it has no rules for pass. The \
         same kernel usually runs programs of a second, 32-bit architecture, and 64-bit programs can make \
         calls of it: everything that the filter refuses can be done that way. Answer `bad-arch \
         kill-process`, or give the other architecture the same rules. It is a note where no kernel runs \
         the architectures that pass beside those of the policy.";
    LINT_X32_GAP = "TM0703", "calls refused on x86_64 are allowed as x32",
        "x32 calls reach a filter as calls of x86_64 with bit 30 (0x40000000) of the number set. A filter \
         that compares numbers for equality and allows the rest allows all of x32, and with it every call \
         that it refuses. Refuse numbers from 0x40000000 on, or list x32 among the architectures so that the \
         rules hold for both. Kernels without CONFIG_X86_X32_ABI answer such calls with ENOSYS.";
    LINT_COMPAT_GAP = "TM0704", "calls refused on one architecture are allowed on its 32-bit sister",
        "One kernel runs programs of both architectures, and a program can usually make calls of either. \
         What is refused or restricted on one and allowed on the other is allowed. Give both the same \
         rules, or leave the one that is not needed out of the policy.";
    LINT_MULTIPLEXER = "TM0705", "restriction that a multiplexer walks around",
        "On 32-bit x86 and some others `socketcall` and `ipc` do the work of many calls and take their \
         arguments in memory, where a filter cannot see them. A restriction of such a call is without effect \
         while the multiplexer is allowed for it. The C libraries have used the direct calls since Linux 4.3, \
         so the multiplexer can be refused, or allowed for other calls only: `allow socketcall(call != \
         SYS_SOCKET)`.";
    LINT_EVADABLE = "TM0706", "a restriction is evaded by setting upper bits that the kernel ignores",
        "A filter sees 64 bits of every argument; the kernel reads the lower 32 of an `int`, the lower 16 of a \
         file mode. A rule that compares all bits with the value to be refused doesn't match if the caller \
         sets one of the upper bits, and the kernel acts as if it were clear. The same holds for every argument of a 32-bit call, \
         because 64-bit code can make such calls with any register contents. Compare the lower part only: \
         the tamis language does so by itself; in an OCI profile use SCMP_CMP_MASKED_EQ with the mask \
         4294967295, or say what is allowed instead of what is refused.";
    LINT_WIDE_COMPARISON = "TM0707", "upper bits that the kernel ignores decide about a refusal",
        "The kernel reads the lower 32 bits of this argument, but the filter refuses the call depending on \
         the upper ones. Nothing gets past it, but a program that leaves something in the upper half, or \
         passes a negative `int` with or without its sign extended, is refused by accident. Compare the \
         lower half only.";
    LINT_TWIN = "TM0708", "a call is restricted, another that does the same is allowed",
        "Linux has several calls for most purposes: `open`, `openat` and `openat2`; `chmod` and `fchmodat2`; \
         `mount` and `move_mount`. A restriction of one is without effect while another is allowed without \
         it. Only calls that are restricted on purpose count: those with a condition, those that a rule \
         names, and those that a filter refuses although it allows by default. A refusal with ENOSYS counts \
         as none: it makes programs use the other call.";
    LINT_IO_URING = "TM0709", "io_uring does what the filter refuses",
        "A request in an io_uring opens files, makes sockets and connections, sends and renames without a \
         system call, so no filter sees it. A process that may set a ring up can do all of that whatever the \
         filter says about the calls. Refuse io_uring_setup with ENOSYS or EPERM: programs fall back to the \
         calls.";
    LINT_UNREACHABLE_RULE = "TM0710", "rule that never decides",
        "Rules are tried in order and the first that matches decides. Earlier rules match every call that \
         this one matches, so it does nothing. Put the exception before the general rule, or delete it.";
    LINT_NEVER_HOLDS = "TM0711", "condition that no call satisfies",
        "The parts of the condition contradict each other, so the rule never matches: often `&&` where `||` \
         was meant, or a masked value with bits outside the mask.";
    LINT_SHADOWED_RULE = "TM0712", "rules that overlap and disagree",
        "Some calls satisfy the conditions of both rules, which answer differently, and neither condition \
         contains the other: the one that stands first decides. If that is meant all is well, but the \
         meaning changes when the rules change places. Where one condition contains the other, as an \
         exception does, nothing is reported.";
    LINT_IDLE_RULE = "TM0713", "rule without effect",
        "The rule is the first to match some calls, but without it later rules or the default would give \
         each of them the same answer. A refusal that only repeats the default is not reported: it guards \
         against a rule that someone adds behind it.";
    LINT_DUPLICATE_RULE = "TM0714", "rule repeated",
        "An earlier rule matches exactly the same calls with the same answer. Delete one, or correct the one \
         that was meant to be another.";
    LINT_UNCHECKED_ARGUMENT = "TM0715", "rules for one call check different arguments",
        "Rules are alternatives: a call is allowed if one of them matches. Of these two, each checks an \
         argument that the other lets be anything, so neither check holds by itself. If both conditions were \
         meant to hold, write one rule with both. Rules of which one only adds a check to the other's, or \
         that differ in an argument that both check, are not reported.";
    LINT_ENOSYS_EXPECTED = "TM0716", "a new call is refused with another error than ENOSYS",
        "Programs and C libraries try a new call first and fall back to an older one if the kernel doesn't \
         know it, which it says with ENOSYS. Any other error they take for the answer: with clone3 refused \
         with EPERM, glibc 2.34 can't create threads. The older call is allowed here, so the refusal \
         protects from nothing; answer ENOSYS instead.";
    LINT_UNKNOWN_ERRNO = "TM0717", "numbers that no kernel has yet are refused with another error than ENOSYS",
        "Calls that are newer than the policy get the default. Programs that try them fall back to older \
         calls if the answer is ENOSYS, as from an old kernel, and fail otherwise. In the tamis language say \
         `unknown errno(ENOSYS)`; container runtimes add such a rule to a profile by themselves, which \
         `--enosys-tail` does too.";
    LINT_PERMISSIVE_DEFAULT = "TM0718", "calls that the filter has no rule for are allowed",
        "A list of what is refused is never complete: every kernel release adds calls, some of which do what \
         an older, refused one does. A list of what is allowed stays safe, because what nobody has looked at \
         is refused.";
    LINT_UNKNOWN_KILLS = "TM0719", "numbers that no kernel has yet end the process",
        "A newer C library may try a call that is newer than the policy, meaning to fall back if it gets \
         ENOSYS. Here the process is ended instead. For code that is fixed together with its policy that is \
         right; otherwise answer such numbers with ENOSYS.";
    LINT_DANGEROUS = "TM0720", "calls with power over the machine are allowed without a condition",
        "These calls change the kernel or the machine, reach other processes, or have been a source of \
         escalations; the message says which it is. Most need a capability, so an unprivileged program gains \
         nothing by them, but a filter is there for the day when another protection fails. Allow them only \
         to programs whose work they are.";
    LINT_DEAD_CODE = "TM0721", "a program has instructions that no call executes",
        "Every call has been considered: none executes these instructions, or all take the same way at \
         these branches. Often a jump goes one instruction too far or a constant is not the one that was \
         meant, and a call gets another answer than its author thinks. Generators that repeat a test on \
         every path leave harmless ones; they only cost steps and length, and `tamis decompile` followed by \
         `tamis compile` makes a program without them.";
}
