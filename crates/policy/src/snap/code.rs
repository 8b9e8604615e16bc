//! TM19xx: profiles of snaps.

tamis_diag::codes! { SNAP;
    SNAP_ARGUMENT = "TM1901", "malformed argument of a snap's profile",
        "Behind the name of a call are at most six arguments: `-` for any value, a decimal number of 32 bits or a constant \
         that snap-seccomp knows, also behind `!`, `<`, `<=`, `>`, `>=` or, for bits that must be set, `|`. Negative \
         numbers are allowed for the calls that change owners and identities. snap-seccomp refuses the whole profile \
         otherwise, and the snap doesn't start.";
    SNAP_USER = "TM1902", "user or group of the machine",
        "`u:NAME` and `g:NAME` are looked up when the profile is installed, so they have other numbers on each machine. \
         Only `root` is 0 everywhere.";
    SNAP_SYSCALL = "TM1903", "unknown system call in a snap's profile",
        "No architecture has a call of this name, so snap-seccomp ignores the line and the call stays denied.";
    SNAP_REFUSED = "TM1904", "rule that libseccomp refuses",
        "snap-seccomp hands each line to libseccomp, and makes no filter if one is refused.";
}
