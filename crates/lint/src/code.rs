//! TM07xx: findings of `tamis lint` in valid policies and programs.

pub use tamis_rules::code::*;

tamis_diag::codes! { LINT;
    LINT_UNCHECKED_ARCH = "TM0701", "the architecture is never checked",
        "A system-call number has a meaning only together with the architecture: 11 is munmap on x86_64 and \
         execve on 32-bit x86, which any 64-bit program can call with `int 0x80`. A filter that checks the \
         number alone mistakes one call for the other. Compare `arch` with the architecture of the filter \
         first, and kill on any other; every filter compiled by tamis does.";
    LINT_FOREIGN_ARCH = "TM0702", "calls of another architecture are allowed",
        "The filter checks the architecture, but allows calls of architectures that it has no rules for. The \
         same kernel usually runs programs of a second, 32-bit architecture, and 64-bit programs can make \
         its calls, which bypasses every restriction of the filter. Write `bad-arch kill-process`, or give \
         the other architecture the same rules. This is a note if no kernel runs the allowed architectures \
         together with those of the policy.";
    LINT_X32_GAP = "TM0703", "calls denied on x86_64 are allowed as x32",
        "x32 calls reach a filter as calls of x86_64 with bit 30 (0x40000000) of the number set. A filter \
         that compares numbers for equality and allows the rest allows all of x32, and so every call that it \
         denies. Deny numbers from 0x40000000 on, or list x32 among the architectures so that the rules \
         apply to both. Kernels without CONFIG_X86_X32_ABI return ENOSYS for such calls.";
    LINT_COMPAT_GAP = "TM0704", "calls denied on one architecture are allowed on its 32-bit counterpart",
        "One kernel runs programs of both architectures, and a program can usually make calls of either. \
         A call that is denied or restricted on one and allowed on the other is in effect allowed. Give both \
         the same rules, or remove the architecture from the policy if none of its programs is to run.";
    LINT_MULTIPLEXER = "TM0705", "restriction bypassed through a multiplexer",
        "On 32-bit x86 and some others `socketcall` and `ipc` multiplex many calls and take their arguments \
         in memory, which a filter cannot read. A restriction of such a call has no effect while the \
         multiplexer allows it. The C libraries have used the direct calls since Linux 4.3, so the \
         multiplexer can be denied, or allowed for other calls only: `allow socketcall(call != \
         SYS_SOCKET)`.";
    LINT_EVADABLE = "TM0706", "restriction bypassed by setting upper bits that the kernel ignores",
        "A filter sees 64 bits of every argument; the kernel reads the lower 32 of an `int`, the lower 16 of a \
         file mode. A rule that compares all bits with the denied value doesn't match if the caller sets one \
         of the upper bits, and the kernel ignores that bit. The same holds for every argument of a 32-bit \
         call, because 64-bit code can make such calls with any register contents. Compare the lower part \
         only: the tamis language does so by default; in an OCI profile use SCMP_CMP_MASKED_EQ with the mask \
         4294967295, or list the allowed values instead of the denied ones.";
    LINT_WIDE_COMPARISON = "TM0707", "a denial depends on upper bits that the kernel ignores",
        "The kernel reads the lower 32 bits of this argument, but the filter denies the call depending on \
         the upper 32. This is no bypass, but a program whose register has other bits in the upper half, or \
         that passes a negative `int` with or without sign extension, is denied by accident. Compare the \
         lower half only.";
    LINT_TWIN = "TM0708", "a call is restricted, but an equivalent call is allowed",
        "Linux has several calls for most purposes: `open`, `openat` and `openat2`; `chmod` and `fchmodat2`; \
         `mount` and `move_mount`. A restriction of one has no effect while another is allowed without it. \
         Only deliberate restrictions are reported: calls with a condition, calls that a rule names, and \
         calls that a filter denies although it allows by default. A denial with ENOSYS is not reported: it \
         makes programs use the other call.";
    LINT_IO_URING = "TM0709", "io_uring provides operations that the filter denies",
        "An io_uring request opens files, creates sockets and connections, sends and renames without a \
         system call, so no filter sees it. A process that may create a ring can do all of that whatever the \
         filter says about the calls. Deny io_uring_setup with ENOSYS or EPERM: programs fall back to system \
         calls.";
    LINT_UNREACHABLE_RULE = "TM0710", "rule that never decides",
        "Rules are tried in order and the first that matches decides. Earlier rules match every call that \
         this one matches, so it has no effect. Put the exception before the general rule, or delete it. \
         Settings of a unit that do more than filter, such as PrivateDevices=, are not reported.";
    LINT_NEVER_HOLDS = "TM0711", "condition that no call satisfies",
        "The parts of the condition contradict each other, so the rule never matches: often `&&` where `||` \
         was meant, or a masked value with bits outside the mask.";
    LINT_SHADOWED_RULE = "TM0712", "rules that overlap and disagree",
        "Some calls satisfy the conditions of both rules, the rules have different actions, and neither \
         condition implies the other: the first rule decides. This may be intended, but the meaning changes \
         when the rules are reordered. Where one condition implies the other, as for an exception, nothing \
         is reported.";
    LINT_IDLE_RULE = "TM0713", "rule without effect",
        "The rule is the first to match some calls, but without it later rules or the default would give \
         each of them the same action. A denial that repeats the default is not reported: it guards against \
         rules added after it.";
    LINT_DUPLICATE_RULE = "TM0714", "rule repeated",
        "An earlier rule matches exactly the same calls with the same action. Correct it, or delete it.";
    LINT_UNCHECKED_ARGUMENT = "TM0715", "rules for one call check different arguments",
        "Rules are alternatives: a call is allowed if one of them matches. Each of these two checks an \
         argument that the other leaves unchecked, so neither check is enforced. If both conditions must \
         hold, write one rule with both. Not reported: a rule that only adds a check to the other's, and \
         rules that differ in an argument that both check.";
    LINT_ENOSYS_EXPECTED = "TM0716", "a new call is denied with an error other than ENOSYS",
        "Programs and C libraries try a new call first and fall back to an older one if the kernel doesn't \
         know it, which it says with ENOSYS. Any other error they treat as final: if clone3 fails with \
         EPERM, glibc 2.34 can't create threads. The older call is allowed here, so the denial protects \
         against nothing; return ENOSYS instead.";
    LINT_UNKNOWN_ERRNO = "TM0717", "unassigned system-call numbers are denied with an error other than \
     ENOSYS",
        "Calls newer than the policy get the default action. Programs that try them fall back to older calls \
         if the result is ENOSYS, as from an old kernel, and fail otherwise. In the tamis language write \
         `unknown errno(ENOSYS)`; container runtimes add such a rule to a profile automatically, as \
         `--enosys-tail` does.";
    LINT_PERMISSIVE_DEFAULT = "TM0718", "calls without a rule are allowed",
        "A deny list is never complete: every kernel release adds calls, and some are equivalent to an \
         older, denied one. An allow list stays safe, because calls that nobody has reviewed are denied.";
    LINT_UNKNOWN_KILLS = "TM0719", "unassigned system-call numbers kill the process",
        "A newer C library may try a call that is newer than the policy and fall back on ENOSYS. Here the \
         process is killed instead. That is right for a program that is released together with its policy; \
         otherwise return ENOSYS for such numbers.";
    LINT_DANGEROUS = "TM0720", "privileged calls are allowed without a condition",
        "These calls change the kernel or the machine, access other processes, or have been a source of \
         privilege escalations; the message says which. Most need a capability, so an unprivileged program \
         cannot use them, but a filter is defence in depth for when another protection fails. Allow them \
         only for programs that need them.";
    LINT_DEAD_CODE = "TM0721", "unreachable instructions in a program",
        "For all possible calls, none executes these instructions, or all take the same path at these \
         branches. Often a jump is off by one instruction or a constant is wrong, and a call gets another \
         action than its author expects. Generators that repeat a test on every path leave harmless ones, \
         which only cost steps and length; `tamis bpf decompile` followed by `tamis compile` removes them.";
    LINT_ADDRESS_FAMILIES = "TM0722", "sockets of families that most programs don't need",
        "The address family of a socket selects the part of the kernel that handles it, and the kernel loads the \
         module of a family on demand. Most programs need AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; the code of \
         others is rarely used and little tested, or reaches what no network namespace separates. This is a \
         warning if the policy chooses among families and leaves a family that has been used to escape from \
         containers or to become root. List the families: `allow socket(family in {AF_UNIX, AF_INET, AF_INET6})`.";
    LINT_ESSENTIAL = "TM0723", "essential calls are denied",
        "Some calls are made for every program, whatever it does. `exit_group` ends a process and `exit` a thread; \
         glibc tries again and then executes an instruction that crashes. `rt_sigreturn`, on some 32-bit machines also \
         `sigreturn`, is how the kernel continues after a signal handler. `restart_syscall` continues a sleep or wait \
         after a stop and a SIGCONT. The C library makes them itself, so they are easily left out of a list \
         that was written by hand. Add them: `allow exit_group, exit, rt_sigreturn, restart_syscall`. A filter that is \
         only one of several, or that a program adds for its last steps, may deny them on purpose: `tamis lint --allow \
         essential-calls`.";
    LINT_START_UP = "TM0724", "no program can start",
        "Before `main` the C library loads the program's libraries (openat, read, fstat, mmap, mprotect, close) and \
         tells the processor where the thread's memory is (arch_prctl, set_thread_area). A program that gets an \
         error from one of these ends with a message of its loader or crashes. Others - brk, rseq, set_robust_list, \
         getrandom - may fail but not kill. A call counts as denied, too, if it is allowed only for arguments \
         that no C library passes. Reported if the filter allows execve, so that programs are started under it, \
         or allows nothing. A filter that a program installs itself needs neither.";
    LINT_SIGN_EXTENSION = "TM0725", "a negative argument with other upper bits than programs pass",
        "The kernel reads 32 bits of an `int`, and a filter sees 64. A negative value such as AT_FDCWD reaches a \
         filter of x86_64 or aarch64 with a clear upper half, 0xffffff9c, from compiled C, and with the sign \
         extended, 0xffffffffffffff9c, from musl, Go and others; on s390x, ppc64, riscv64, mips64 and loongarch64 \
         the sign is always extended. A rule with only one of the forms denies the call to the other programs. \
         Compare the lower half: `openat(dfd == AT_FDCWD)` of the tamis language does, in an OCI profile \
         SCMP_CMP_MASKED_EQ with the mask 4294967295 as `value` and the lower half as `valueTwo`.";
    LINT_TIME64 = "TM0726", "a successor with 64-bit times kills",
        "On 32-bit architectures C libraries make calls with 64-bit times first: clock_gettime64, futex_time64, \
         ppoll_time64, and statx. They fall back to the older calls after ENOSYS. If the older call is allowed \
         and its successor kills, each program of a current C library is killed. Allow both, or return ENOSYS \
         for the successor.";
    LINT_RUNTIME = "TM0727", "a runtime can't start containers under the profile",
        "A runtime of containers installs the profile before it starts the container's program, so its own last steps \
         need calls: runc opens and closes descriptors and writes to a pipe. Without no_new_privs it also drops \
         capabilities and changes the user and the folder behind the filter, since installing it takes \
         capabilities. `docker run --security-opt no-new-privileges`, or `noNewPrivileges` in the configuration, needs \
         fewer. Found on runc 1.1 and crun 1.8; other versions may make more calls.";
    LINT_OUTDATED_LIST = "TM0728", "a deny list is older than the kernel",
        "A deny list is written for the calls of its time. Each kernel adds some, and the list allows them by its \
         default: Flatpak's list denied `mount` and allowed the mount calls of Linux 5.2 (CVE-2021-41133). Reported are \
         calls of the named kernel that came after the newest call that the list treats in a way of its own. Review \
         them, then state the kernel for which the list was reviewed: `known-until linux 6.18` in the tamis language answers \
         later calls with ENOSYS, so that programs fall back to older ones. Better, list what is allowed.";
    LINT_TARGET_NEEDS = "TM0729", "a call is denied that a named program or library needs",
        "C libraries, runtimes and kernels begin to make calls with some version: glibc starts threads by `clone3` since \
         2.34 and guards stacks by MADV_GUARD_INSTALL since 2.42. Most go on after ENOSYS, as on an older kernel, and fail \
         after EPERM. `tamis lint --target glibc-2.42` compares the policy with tables of such needs, each with its \
         source. It is a note if the target goes on after the answer that the policy gives. Allow the call, or answer the \
         error that the finding names; `known-until linux 6.18` in the tamis language answers all later calls so.";
    LINT_MERGED_BOUNDS = "TM0730", "a program resembles those of an older libseccomp that lost a bound",
        "libseccomp before 2.6.1 merged rules with upper bounds of 64 bits (`<`, `<=`) on the same argument of a call wrongly \
         (GHSA-4q85-33p6-j5g6): if the bounds have the same upper half, values with a smaller one get the result of the rule \
         that was added first, also below the closer bound of the other. The program no longer shows the rules, so the \
         finding says that it resembles such a program, with calls to look at. Compare it with its rules: `tamis diff \
         rules.json filter.bpf`.";
}
