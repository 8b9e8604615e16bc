//! TM02xx: the tamis language.

codes! { TAMIS;
    UNKNOWN_SYSCALL = "TM0201", "unknown system call",
        "No architecture of the tables has a call with this name. A misspelt name must not silently allow \
         or deny nothing, so it is an error.";
}
