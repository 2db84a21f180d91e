//! An area.
