//! Conversions between WIT types and the host's types.
//!
//! Values from a guest are validated here, because they can be arbitrary.

pub(super) mod call;
pub(super) mod document;
pub(super) mod manifest;
pub(super) mod queue;
