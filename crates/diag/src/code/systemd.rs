//! TM11xx: systemd units.

codes! { SYSTEMD;
    SYSTEMD_SYNTAX = "TM1101", "line that systemd ignores",
        "A unit consists of sections, `[Service]`, and assignments below them, `Directive=value`. A line that \
         is neither, or stands above the first section, is ignored by systemd, which logs a warning and \
         starts the service without what the line was meant to say.";
    SYSTEMD_DIRECTIVE = "TM1102", "directive without effect",
        "The directive is unknown to systemd 252, or stands in a section where it has no effect. systemd \
         ignores it and starts the service all the same: a misspelt restriction restricts nothing. \
         Directives that begin with `X-` are for others, and nothing is said of them.";
    SYSTEMD_VALUE = "TM1103", "value that systemd ignores",
        "The value is not one that the directive takes: a boolean is `yes` or `no`, an errno a name, a number \
         from 1 to 4095 or `kill`. systemd ignores the assignment, or the word, and starts the service \
         without it.";
    SYSTEMD_SYSCALL = "TM1104", "unknown system call or set",
        "No architecture has a call of this name, or systemd 252 no set of it. systemd ignores the word: in \
         a list of what is denied, the call that was meant stays allowed.";
    SYSTEMD_EMPTY = "TM1105", "unit without a filter",
        "None of the unit's directives makes systemd install a filter, so every call is allowed. Directives \
         that work by other means, such as ProtectSystem= or CapabilityBoundingSet=, are no part of a \
         filter.";
}
