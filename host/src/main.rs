//! The `assurance` binary.
fn main() {}
