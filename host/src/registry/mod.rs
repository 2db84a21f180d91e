//! Which version of which area answers.
