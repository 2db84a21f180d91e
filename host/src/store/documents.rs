//! Documents, one by one.
