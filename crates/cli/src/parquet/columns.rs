//! The columns of the table.

/// The schema: a row is a count, of one run or of a sum.
pub(super) const SCHEMA: &str = "message tamis_profile {
    OPTIONAL BYTE_ARRAY run (STRING);
    OPTIONAL BYTE_ARRAY machine (STRING);
    OPTIONAL BYTE_ARRAY program (STRING);
    REQUIRED BYTE_ARRAY kind (STRING);
    OPTIONAL BYTE_ARRAY arch (STRING);
    OPTIONAL INT64 nr;
    OPTIONAL BYTE_ARRAY call (STRING);
    OPTIONAL INT32 arg;
    OPTIONAL INT64 value (INTEGER(64, false));
    OPTIONAL BYTE_ARRAY args (STRING);
    REQUIRED INT64 count (INTEGER(64, false));
    REQUIRED INT64 runs (INTEGER(64, false));
}";
