//! One handler's transaction: what it read, and what it wants written.

mod code;

pub use code::{AreaCode, CallError, Ended};

/// One handler's transaction.
#[derive(Debug)]
pub struct UnitOfWork {}
