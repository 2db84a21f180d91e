//! Records calls and replays them: in the same sandbox, with the same limits,
//! without database and network.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::component::Component;
use super::instance::{CallState, Invocation};
use super::settings::Settings;
use super::wasi::wasi_seed;
use assurance_core::config::AreaCallLimits;
use assurance_core::recordings::{CallRecording, Player, RecordedLimits};
use assurance_work::{CallError, UnitOfWork};

impl Component {
    /// Begins the recording of the call with its input and limits, if the call
    /// is to be recorded.
    pub(super) fn begin_recording(
        &self,
        unit: &UnitOfWork,
        input: &impl Serialize,
        deadline: Duration,
    ) {
        let Some(recorder) = unit.recorder() else { return };
        let limits = self.shared.limits_of(self.area.name());
        let limits = RecordedLimits {
            memory_bytes: limits.memory_bytes as u64,
            host_calls: limits.host_calls,
            cpu_ms: limits.cpu.map(|cpu| u32::try_from(cpu.as_millis()).unwrap_or(u32::MAX)),
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            reply_bytes: self.shared.settings.config.runtime.max_reply_bytes,
        };
        recorder.begin(input, wasi_seed(&unit.spec().call.seed), limits);
    }

    /// Replays a recorded call in the sandbox, with results of host functions
    /// from the recording.
    pub(super) async fn replay<I: Invocation + DeserializeOwned>(
        &self,
        player: &Arc<Player>,
    ) -> Result<I::ReturnValue, CallError> {
        let recording = player.recording();
        let input = recording.input.as_ref().map_or("null", |input| input.get());
        let input: I = serde_json::from_str(input)
            .map_err(|error| CallError::Host(anyhow::anyhow!("the recorded input: {error}")))?;
        let meter = self.meter::<I>(Duration::from_millis(recording.limits.deadline_ms));
        let (shared, area) = (Arc::clone(&self.shared), Arc::clone(&self.area));
        let state = CallState::replay(shared, area, Arc::clone(player), meter.clone());
        let finished = self.run_in(state, &meter, input).await;
        finished.result.map_err(|failure| {
            player.record_stack(failure.backtrace());
            failure.error
        })
    }
}

impl Settings {
    /// Returns settings with the limits that the recorded call had, for its
    /// replay.
    #[must_use]
    pub fn of_recording(recording: &CallRecording) -> Self {
        let limits = &recording.limits;
        let own = AreaCallLimits {
            max_memory_bytes: Some(limits.memory_bytes),
            max_host_calls: Some(limits.host_calls),
            max_cpu_ms: limits.cpu_ms,
            ..AreaCallLimits::default()
        };
        let mut settings = Self::default();
        settings.config.runtime.max_reply_bytes = limits.reply_bytes;
        settings.config.areas.limits.insert(recording.about.area.clone(), own);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::super::generations::ContractGeneration;
    use assurance_core::recordings::CONTRACT;

    #[test]
    fn recordings_are_in_the_terms_of_the_current_generation() {
        assert_eq!(CONTRACT, format!("assurance:area@{}", ContractGeneration::CURRENT));
    }
}
