//! Interfaces that only name types.

use super::super::bindings::assurance::area::{manifest, types};
use super::super::instance::CallState;

impl types::Host for CallState {}

impl manifest::Host for CallState {}
