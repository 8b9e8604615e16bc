//! stub
use crate::Arch;
/// stub
pub fn value(_: Arch, _: &str) -> Option<u64> {
    None
}
/// stub
pub fn names(_: Arch) -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}
/// stub
pub fn is_known(_: &str) -> bool {
    false
}
