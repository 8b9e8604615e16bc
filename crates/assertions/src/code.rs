//! TM16xx: files of checks, and checks that fail.

pub use tamis_policy::code::*;

tamis_diag::codes! { CHECKS;
    CHECKS_EMPTY = "TM1601", "nothing to check",
        "The file or the group has no check, so it would succeed for every policy. A file that only defines names is \
         meant to be included by another one.";
    CHECKS_CONTRADICT = "TM1602", "contradictory checks",
        "Two checks demand different results for the same call: one that it is never allowed and one that it is, or two \
         actions. No policy satisfies both. Narrow one of them by a condition, or by the architectures that `on` selects.";
    CHECKS_UNUSED_PARAMETER = "TM1603", "parameter without effect",
        "A parameter is a constant that the caller of the checks may replace by `--param`. No check uses this one, so to set \
         it would change nothing, although its name promises that it does.";
    CHECKS_REFERENCE = "TM1604", "reference that can't be read",
        "The policy or program with which a check compares is found relative to the file of the check. It may have every \
         format that policies and programs have. The message has the reason for the failure.";
    CHECK_NEVER = "TM1605", "a call is allowed that must never be",
        "A call of a `never allow` is executed under the policy. The example was evaluated on the policy. All values of an \
         argument count that the kernel reads as the named one, and so do x32 and 32-bit calls, socketcall and ipc.";
    CHECK_ALWAYS = "TM1606", "a call is denied that must always be allowed",
        "A call of an `always allow` is not executed under the policy: it gets an error, ends the process, or somebody \
         else decides about it. The example was evaluated on the policy.";
    CHECK_EXPECT = "TM1607", "a call gets another action than expected",
        "A call of an `expect` gets another action than the check says, or the same one with another errno or message. The \
         example was evaluated on the policy.";
    CHECK_COMPARE = "TM1608", "another relation to the reference than demanded",
        "The policy was compared with the reference for every call, and the calls shown contradict `stricter than`, `looser \
         than` or `equal to`. Equal policies are both stricter and looser than each other.";
    CHECK_SIZE = "TM1609", "more instructions than permitted",
        "The filter has more instructions than `at most` permits: of a policy those of the compiled program, of a stack \
         those of all its programs. The kernel accepts 4096 in one program.";
    CHECK_CACHED = "TM1610", "a call for which the kernel runs the filter",
        "Since Linux 5.11 the kernel remembers the numbers that a filter allows for all arguments, and doesn't run it for \
         them. This call isn't one of them: the filter tests an argument, denies the call or returns another action.";
}
