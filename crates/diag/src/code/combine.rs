//! TM17xx: combining policies.

codes! { COMBINE;
    COMBINE_EMPTY = "TM1701", "combination that allows no call",
        "The combination of the policies denies every call, so no program runs under it: the policies have no allowed call \
         in common, or one takes away all that the other allows. The message shows a call that one policy allows, and the \
         place at which another denies it. Often one of them is for another architecture. Nothing is written.";
}
