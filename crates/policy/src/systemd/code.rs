//! TM11xx: systemd units.

tamis_diag::codes! { SYSTEMD;
    SYSTEMD_SYNTAX = "TM1101", "line that systemd ignores",
        "A unit consists of sections, `[Service]`, and assignments below them, `Directive=value`. systemd \
         ignores any other line, and lines above the first section: it logs a warning and starts the service \
         without them.";
    SYSTEMD_DIRECTIVE = "TM1102", "directive without effect",
        "The release of systemd by which the unit is read doesn't know the directive, or not in this section, or accepts it \
         without effect. systemd ignores it and starts the service: a misspelt restriction restricts nothing. Directives that begin with `X-` \
         are for other programs and are not reported.";
    SYSTEMD_VALUE = "TM1103", "value that systemd ignores",
        "The directive does not accept the value: a boolean is `yes` or `no`, an errno a name, a number \
         from 1 to 4094 or `kill`. systemd ignores the assignment, or the word, and starts the service \
         without it.";
    SYSTEMD_SYSCALL = "TM1104", "unknown system call or set",
        "No architecture has a call of this name, or the release of systemd by which the unit is read no set of it. systemd ignores the word: in \
         a deny list, the intended call stays allowed.";
    SYSTEMD_EMPTY = "TM1105", "unit without a filter",
        "None of the unit's directives makes systemd install a filter, so every call is allowed. Directives \
         with other mechanisms, such as ProtectSystem= or CapabilityBoundingSet=, do not install a filter.";
    SYSTEMD_REFUSED = "TM1106", "unit that systemd doesn't start",
        "systemd ignores most mistakes in units, but not this one: it doesn't load the unit, or fails to start \
         the service with status 228 (SECCOMP). A filter for the unit would be one that systemd never installs. In a \
         drop-in systemd ignores the rest of the file, and starts the service without it.";
    SYSTEMD_PRINTED = "TM1107", "text of several files in one with the name of a unit",
        "`systemctl cat` prints a unit and its drop-ins, with the path of each before it. systemd reads a file with \
         such a text as one: the paths are comments, and a drop-in goes on in the last section of the file before \
         it. Give the text on standard input or in a file with another name to have it read as several files.";
    SYSTEMD_VERSION = "TM1108", "release of systemd by which a unit is read",
        "Sets of calls, directives and rules differ between releases of systemd: a deny list may deny less on an older one, \
         an allow list allow less. The release is the one that the option `systemd` names, else the one that this machine \
         has, else the newest that is known. Where it isn't certain whether a release has a call in a set, the reading that \
         denies more counts.";
    SYSTEMD_ELSEWHERE = "TM1109", "denial that systemd takes back",
        "Since 257 systemd calls `write` itself behind the filter, to say that it executes the program, so it allows every \
         service this call, whatever SystemCallFilter= says.";
    SYSTEMD_BY_KERNEL = "TM1110", "restriction by the kernel instead of a filter",
        "Since 254 systemd sets PR_SET_MDWE for MemoryDenyWriteExecute=, where the kernel has it (Linux 6.3), and installs no \
         filter. A filter for such kernels (`--kernel`) has nothing of it, and a program that installs it without systemd \
         lacks the restriction. Without `--kernel` the filter has it.";
}
