//! TM06xx: profiles: how often each call is made.

pub use tamis_diag::code::*;

tamis_diag::codes! { PROFILE;
    PROFILE_JSON = "TM0601", "not valid JSON",
        "A profile is strict JSON: no comments, no trailing commas, no single quotes, no hexadecimal \
         numbers. Tables of other tools are read as well; a text that begins with `{` is parsed as JSON.";
    PROFILE_TYPE = "TM0602", "value of the wrong type",
        "The member exists, but its value has another JSON type than docs/schemas/profile.1.json gives it. \
         A call is a name or a number, a value of an argument is a number or text such as \"0x80\", a count \
         is a number.";
    PROFILE_COUNT = "TM0603", "not a count",
        "Counts are whole numbers from 0 to 18446744073709551615, in decimal digits without sign, point or \
         exponent. The values of one argument, and the samples of a call, occur at most as often as the \
         call; unknown values are left out.";
    PROFILE_DUPLICATE = "TM0604", "given twice",
        "A call, an argument's value or a list of arguments appears in a profile once, and an object has a \
         key once. It would be ambiguous whether two counts add up or one replaces the other. To merge \
         profiles, name several files: `tamis profile a.json b.json -o both.json`.";
    PROFILE_MEMBER = "TM0605", "unknown or missing member",
        "A profile has `schema` and `calls`; a call has `arch`, `call`, `count`, and where arguments were \
         seen `values` and `samples`. Of several runs a profile has `runs` or `unnamed_runs`, and every call and \
         value says in how many of them it was seen. A misspelt member would be lost silently, so any other is \
         an error.";
    PROFILE_CALL = "TM0606", "call that the architecture does not have",
        "The name is not that of a call of the architecture. In a JSON profile that is an error; a call that \
         is newer than the tables is written as its number. In a table of another tool it is a warning and \
         the row is left out: tables don't name their architecture, so `--arch` may be wrong.";
    PROFILE_ARCH = "TM0607", "unknown architecture",
        "Architectures are named as the kernel's tools name them: x86_64, x86, x32, aarch64, arm, riscv64 \
         and so on; `tamis tables arches` lists them.";
    PROFILE_TABLE = "TM0608", "not a row of the table",
        "The text was detected as a table of `strace -c` or `perf trace -s`, or as a frequency file with \
         lines `NAME: COUNT`, but this line is not a row of it. Extract a table from other output as whole \
         lines, heading included.";
    PROFILE_KIND = "TM0609", "no system-call counts",
        "The text is neither a JSON profile nor another supported form: a table of `strace -c` (with a column \
         `calls`) or `perf trace -s`, a log of `strace` or `perf trace`, audit records, also as the journal's JSON, \
         events of sysdig or falco as JSON, recordings of the security-profiles-operator, or a frequency file with \
         lines `NAME: COUNT`.";
    PROFILE_NESTING = "TM0610", "nested too deeply",
        "A profile has five levels of nesting. The limit is far above that; it keeps hostile input from \
         exhausting the stack.";
    PROFILE_UNFIT = "TM0611", "profile of another program",
        "The profile counts calls that the policy never allows, or none of those that it allows. The filter \
         is still correct, because a profile never changes its results, but it is optimised for a program \
         that it would stop. The usual reason is a profile of another program or another architecture.";
    PROFILE_SATURATED = "TM0612", "count too large",
        "Counts have 64 bits. A sum that is larger is cut at 18446744073709551615, so that merging stays \
         independent of the order; how often such a call was made is no longer known, and shares of the sum \
         are wrong.";
    PROFILE_POLICY = "TM0613", "policy in the place of counts",
        "A seccomp profile of a container engine, or another policy, says what is allowed; a profile of counts says \
         how often a program made which calls. Taken for counts it would lose its conditions: a policy that allows \
         sockets of the family AF_UNIX would be learned as one that allows all. Recordings of the \
         security-profiles-operator are read, unless they have conditions on arguments.";
    PROFILE_RECORD = "TM0614", "audit record not read",
        "A line looks like an audit record of seccomp and wasn't read. Either another program than the kernel and its \
         audit wrote it: anyone can have such a line logged, and a policy that is changed for it would be changed \
         for them. Or its call is missing or unknown, or the form leaves it out, as `ausearch --format text` and \
         `--format csv` do.";
}
