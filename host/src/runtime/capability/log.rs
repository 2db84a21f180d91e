//! Lines for the operator.

use tracing::Level;

use super::super::bindings::assurance::area::log::{self, Host};
use super::super::instance::CallState;
use crate::domain::manifest::Capability;

impl Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.count(Capability::Log)?;
        let level = match level {
            log::Level::Debug => Level::DEBUG,
            log::Level::Info => Level::INFO,
            log::Level::Warn => Level::WARN,
            log::Level::Error => Level::ERROR,
        };
        self.log.write(&self.area, level, &message);
        Ok(())
    }
}
