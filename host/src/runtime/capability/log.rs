//! Lines for the operator.

use super::super::bindings::assurance::area::log::{self, Host};
use super::super::instance::CallState;
use crate::domain::manifest::Capability;
use crate::journal::Level;

impl Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.count(Capability::Log)?;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        self.write_log(level, &message);
        Ok(())
    }
}
