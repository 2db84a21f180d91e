//! The master key, what is derived from it, and sealing.
