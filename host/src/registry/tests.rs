//! The registry: what may be live together, and what is found where.
