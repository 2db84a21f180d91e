//! Settings of the runtime: the configuration in the types of the sandbox.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assurance_core::config::{AreaCallLimits, Config};

/// Settings of the runtime: limits of single calls and of concurrent calls,
/// compiler and cache.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Configuration of the service, with the limits of areas at start.
    pub config: Config,
    /// Program whose child process compiles components (this program); `None`:
    /// compile in this process.
    pub compiler: Option<PathBuf>,
    /// Folder of compiled components; `None`: no cache.
    pub cache_dir: Option<PathBuf>,
}

/// Limits of one call of an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    /// Maximum linear memory of the call's instance, in bytes.
    pub(super) memory_bytes: usize,
    /// Maximum number of host calls in one call of the area.
    pub(super) host_calls: u32,
    /// Maximum processor time of one call; `None` if only the deadline limits
    /// it.
    pub(super) cpu: Option<Duration>,
    /// Limit of the time for which the call may block other writers.
    pub(super) turn: WriteLockLimit,
}

/// Limit of the time for which a call may block other writers: from its first
/// write in the database to its commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteLockLimit {
    /// Maximum processor time for which a call blocks other writers.
    pub(super) cpu: Duration,
    /// Maximum total time for which a call blocks other writers.
    pub(super) wall: Duration,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let cache_dir = Some(config.runtime_cache_dir());
        Self { config: config.clone(), compiler: None, cache_dir }
    }
}

/// Number of instances in an offline command. Calls run one after the other,
/// but a component may consist of several modules.
const OFFLINE_INSTANCES: u32 = 16;

impl Settings {
    /// Returns the settings for a command that loads one component: compiled code is stored only in
    /// `scratch`, and the number of instances is low, because the address space may be limited.
    pub(super) fn offline(mut self, scratch: Option<&Path>) -> Self {
        self.cache_dir = scratch.map(Path::to_path_buf);
        self.config.runtime.max_instances = OFFLINE_INSTANCES;
        self
    }

    /// Returns the limits of one call, given the operator's limits for its
    /// area. Memory is at most that of the pool's slots.
    pub(super) fn call_limits(&self, own: AreaCallLimits) -> CallLimits {
        let config = &self.config.runtime;
        let memory_bytes = bytes(own.max_memory_bytes.unwrap_or(config.max_memory_bytes));
        CallLimits {
            memory_bytes: memory_bytes.min(self.most_memory_bytes()),
            host_calls: own.max_host_calls.unwrap_or(config.max_host_calls),
            cpu: own.max_cpu_ms.map(millis),
            turn: WriteLockLimit {
                cpu: millis(own.max_turn_cpu_ms.unwrap_or(config.max_turn_cpu_ms)),
                wall: millis(own.max_turn_ms.unwrap_or(config.max_turn_ms)),
            },
        }
    }

    /// Returns the maximum memory of an instance of any area, in bytes.
    pub(super) fn most_memory_bytes(&self) -> usize {
        let areas = self.config.areas.limits.values().filter_map(|limits| limits.max_memory_bytes);
        bytes(areas.fold(self.config.runtime.max_memory_bytes, u64::max))
    }

    /// Returns the maximum size of a reply, problem or checkpoint, in bytes.
    pub(super) fn max_reply_bytes(&self) -> usize {
        bytes(self.config.runtime.max_reply_bytes)
    }

    /// Returns the interval at which running guests yield.
    pub(super) fn tick(&self) -> Duration {
        millis(self.config.runtime.epoch_tick_ms.max(1))
    }
}

pub(super) fn millis(configured: u32) -> Duration {
    Duration::from_millis(configured.into())
}

pub(super) fn bytes(configured: u64) -> usize {
    usize::try_from(configured).unwrap_or(usize::MAX)
}
