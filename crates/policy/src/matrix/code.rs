//! TM14xx: matrices of options.

tamis_diag::codes! { MATRIX;
    MATRIX_SYNTAX = "TM1401", "syntax error in a matrix",
        "A matrix of options is a TOML file: `policy = \"server.tamis\"` at the top, `[option.NAME]` before the \
         values of each option, and a line for each value: `none = {}`.";
    MATRIX_KEY = "TM1402", "unknown key in a matrix",
        "An unknown key would have no effect, so it is an error. The book's page `precompile.md` lists all \
         keys.";
    MATRIX_VALUE = "TM1403", "invalid value for a key",
        "The value has the wrong type, or names something that doesn't exist.";
    MATRIX_MISSING = "TM1404", "matrix without policy or options",
        "A matrix needs at least one option, and a policy: `policy = \"FILE\"` at the top or in all values \
         of an option. Use `tamis compile` for a policy without options.";
    MATRIX_NAME = "TM1405", "invalid name of an option or value",
        "Names of options and values become identifiers in generated code, with `_` for `-`. So they consist \
         of lower-case letters, digits and single `-` or `_` between them, and differ in more than `-` and \
         `_`.";
    MATRIX_EMPTY = "TM1406", "option without a choice",
        "An option without values leaves no combination; one with a single value offers no choice.";
    MATRIX_SAME = "TM1407", "identical values",
        "Two values of an option have the same settings, so their filters are the same. One of them probably \
         lacks a setting.";
    MATRIX_TWICE = "TM1408", "key set by two options",
        "Two options set the same constant, or both name a policy. In a combination of both, one of them \
         would have no effect. Rules, files and members of sets accumulate and may come from any number of \
         options.";
    MATRIX_UNSET = "TM1409", "key not set by all values",
        "One value of an option sets a key that another value does not, and there is no default at the top. \
         The key would be missing in some combinations.";
    MATRIX_EXCLUSION = "TM1410", "invalid or useless exclusion",
        "An `[[exclude]]` lists options with one or more of their values, and excludes the combinations that \
         contain all of them. It must name existing options and values, exclude at least one combination, \
         and leave at least one.";
    MATRIX_LIMIT = "TM1411", "too many combinations",
        "The number of combinations is the product of the numbers of values, so it grows fast. Each becomes \
         a proved filter, and a row of the lookup table of the program.";
    MATRIX_LANGUAGE = "TM1412", "setting not available in the policy's language",
        "Rules, included files, constants and sets can be added to policies in the tamis language only, `cap` to \
         OCI profiles, `thread` to Firecracker's filters. For other languages, each value can name a whole \
         policy with `policy`.";
    MATRIX_IDLE = "TM1413", "option without effect",
        "The filters are the same for all values of the option. Check that the policy uses what the option \
         sets. An option without effect multiplies compile time and the size of the table.";
    MATRIX_VARIABLES = "TM1414", "variables that differ between combinations",
        "A program binds the run-time variables of all combinations through one structure. A variable may be \
         missing in some combinations and have different ranges, but its width and number of values must be \
         the same in all.";
}
