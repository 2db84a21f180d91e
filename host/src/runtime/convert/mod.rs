//! The contract's types and the host's, one into the other.
//!
//! What comes from a guest is checked here: it may be any bytes at all.

pub(super) mod call;
pub(super) mod document;
pub(super) mod manifest;
pub(super) mod queue;
