//! TM05xx: the ruleset text form.

codes! { RULESET;
    RULESET_SYNTAX = "TM0501", "not a ruleset",
        "The text form of a ruleset is what `tamis compile --emit rules` prints.";
}
