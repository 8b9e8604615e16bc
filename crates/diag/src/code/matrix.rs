//! TM14xx: matrices of options.

codes! { MATRIX;
    MATRIX_SYNTAX = "TM1401", "syntax error in a matrix",
        "A matrix of options is a TOML file: `policy = \"server.tamis\"` at the top, `[option.NAME]` before the \
         values of each option, and a line for each value: `none = {}`.";
    MATRIX_KEY = "TM1402", "unknown key in a matrix",
        "A key that tamis doesn't know would have no effect, and was surely meant to have one. `precompile.md` of \
         the book lists all keys.";
    MATRIX_VALUE = "TM1403", "value that a key can't have",
        "The value has another type than the key wants, or names something that doesn't exist.";
    MATRIX_MISSING = "TM1404", "matrix without policy or options",
        "A matrix needs a policy, by `policy = \"FILE\"` at the top or in all values of an option, and an option. \
         A policy without options is compiled by `tamis compile`.";
    MATRIX_NAME = "TM1405", "name that an option or value can't have",
        "Options and values are called by their names in generated code, with `_` for `-`, so names have small \
         letters, digits and single `-` or `_` between them, and differ in more than `-` and `_`.";
    MATRIX_EMPTY = "TM1406", "option without a choice",
        "An option without values leaves no combination; one with a single value leaves nothing to choose.";
    MATRIX_SAME = "TM1407", "values that are the same",
        "Two values of an option set the same, so that their filters are the same. One of them probably lacks \
         something.";
    MATRIX_TWICE = "TM1408", "set by two options",
        "Two options give a value to one name, or name a policy each. In a combination of both, one of them would \
         have no effect. Rules, files and members of sets add up and may come from any number of options.";
    MATRIX_UNSET = "TM1409", "not set by all values",
        "A value of an option sets something that another value of it leaves open, and there is no value for all \
         at the top. The policy would lack it in some combinations.";
    MATRIX_EXCLUSION = "TM1410", "exclusion that is wrong or in vain",
        "An `[[exclude]]` lists options with one or more of their values, and excludes the combinations that have \
         all of them. It has to name options and values that exist, to exclude something, and to leave something.";
    MATRIX_LIMIT = "TM1411", "too many combinations",
        "The number of combinations is the product of the numbers of values, so it grows fast. Each becomes a \
         filter that is proved, and a row of the table in which a program looks its filter up.";
    MATRIX_LANGUAGE = "TM1412", "setting that the policy's language doesn't have",
        "Rules, included files, constants and sets can be added to policies in the tamis language only, `cap` to \
         OCI profiles, `thread` to Firecracker's filters. Policies in other languages can be exchanged as a whole, by \
         `policy` in each value.";
    MATRIX_IDLE = "TM1413", "option that changes nothing",
        "Whatever value the option has, the filters are the same. Does the policy use what the option sets? An \
         option in vain multiplies the work and the table.";
    MATRIX_VARIABLES = "TM1414", "variables that differ between combinations",
        "A program binds the run-time variables of a family through one structure. A variable may be missing in some \
         combinations, and have another range, but its width and the number of its values are the same in all.";
}
