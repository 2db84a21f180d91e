//! Interface `log`: log lines for operators.

use super::super::bindings::assurance::area::log::{self, Host};
use super::super::instance::CallState;
use assurance_core::area_log::LogLevel;

impl Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.count_in_describe()?;
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.log().write(level, &message);
        Ok(())
    }
}
