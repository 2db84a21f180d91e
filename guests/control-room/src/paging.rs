//! What lists have in common.

/// How many a page has where nothing is said.
pub(crate) fn default_limit() -> u32 {
    50
}
