//! Interface `settings`: the operator's settings for the area.

use super::super::bindings::assurance::area::settings::Host;
use super::super::instance::CallState;
use assurance_core::domain::manifest::Capability;

impl Host for CallState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        self.enter(Capability::Settings)?;
        let values = self.shared.settings.config.areas.settings.get(self.area.name());
        Ok(values.and_then(|values| values.get(&key)).cloned())
    }
}
