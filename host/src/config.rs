//! The configuration, checked whole before anything binds.
