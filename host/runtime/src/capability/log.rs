//! Interface `log`: log lines for operators.

use super::super::bindings::assurance::area::log::{self, Host};
use super::super::convert::same;
use super::super::instance::CallState;
use assurance_core::area_log::LogLevel;

same!(log::Level => LogLevel { Debug, Info, Warn, Error });

impl Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.count_in_describe()?;
        self.log().write(level.into(), &message);
        Ok(())
    }
}
