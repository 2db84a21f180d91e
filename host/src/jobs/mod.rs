//! The durable queue's workers.
