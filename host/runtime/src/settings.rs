//! Limits of the sandbox with their units and defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::compiler::CompileLimits;
use assurance_core::config::{AreaCallLimits, BudgetsConfig, Config, LanesConfig, MalwareConfig};

/// Settings of the runtime: limits of single calls and of concurrent calls,
/// compiler and cache.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum linear memory of one instance, in bytes.
    pub max_memory_bytes: usize,
    /// Linear memory of all instances together beyond the first MiB of each,
    /// in bytes.
    pub max_total_memory_bytes: usize,
    /// Maximum number of concurrent instances of all areas together.
    pub max_instances: u32,
    /// Maximum number of concurrent calls of one area; further ones are refused
    /// as overloaded.
    pub max_concurrent_per_area: usize,
    /// Maximum number of concurrent requests of one area that have exceeded
    /// four times the first time slice; the same number applies to its jobs.
    pub max_long_calls_per_area: usize,
    /// Interval of wasmtime's epoch ticks, at which running guests yield, in milliseconds.
    pub epoch_tick_ms: u32,
    /// First time slice of a call, in milliseconds. A guest that runs for
    /// longer continues at lower priority.
    pub first_slice_ms: u32,
    /// Niceness of the thread for requests after their first time slice. They
    /// get about a tenth of a busy processor. Not less, because on SQLite such
    /// a call may hold the write lock.
    pub request_niceness: i32,
    /// Niceness of the thread for jobs after their first time slice. Nobody
    /// waits for them, but they must finish even on a busy machine.
    pub job_niceness: i32,
    /// Niceness of the threads that compile components.
    pub compile_niceness: i32,
    /// Largest reply, problem or checkpoint of an area, in bytes.
    pub max_reply_bytes: usize,
    /// Maximum bytes that a guest may pass in one host call: the largest blob plus overhead.
    pub max_host_call_bytes: usize,
    /// Maximum number of host calls that a guest makes in one call.
    pub max_host_calls: u32,
    /// Limit of the time for which one call may block other writers.
    pub write_lock_limit: WriteLockLimit,
    /// Maximum number of log lines that a guest writes in one call; further
    /// ones are counted and dropped.
    pub max_log_lines: u32,
    /// Longest log line of a guest, in bytes; the rest is cut off.
    pub max_log_line_bytes: usize,
    /// Largest component, in bytes.
    pub max_component_bytes: usize,
    /// Maximum processor time of `describe`, in milliseconds.
    pub describe_cpu_ms: u32,
    /// Maximum wall time of `describe`, in milliseconds; longer than its processor
    /// time, so that areas load on a busy machine.
    pub describe_timeout_ms: u32,
    /// Capacity of each lane, as the interface `queue` returns it.
    pub lanes: LanesConfig,
    /// Limits of compiling one component.
    pub compile: CompileLimits,
    /// Program whose child process compiles components (this program); `None`:
    /// compile in this process.
    pub compiler: Option<PathBuf>,
    /// Folder of compiled components; `None`: no cache.
    pub cache_dir: Option<PathBuf>,
    /// Budgets of areas and workspaces.
    pub budgets: BudgetsConfig,
    /// Limits of single areas at start, by name of the area.
    pub areas: BTreeMap<String, AreaCallLimits>,
    /// The operator's settings for areas, by area and key.
    pub values: BTreeMap<String, BTreeMap<String, String>>,
    /// Configuration of the malware scanner.
    pub malware: MalwareConfig,
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
pub struct WriteLockLimit {
    /// Maximum processor time for which a call blocks other writers.
    pub cpu: Duration,
    /// Maximum total time for which a call blocks other writers.
    pub wall: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let mut settings = Self::from(&Config::default());
        settings.cache_dir = None;
        settings
    }
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let section = &config.runtime;
        Self {
            max_memory_bytes: bytes(section.max_memory_bytes),
            max_total_memory_bytes: bytes(section.max_total_memory_bytes),
            max_instances: section.max_instances,
            max_concurrent_per_area: section.max_concurrent_per_area as usize,
            max_long_calls_per_area: section.max_long_calls_per_area as usize,
            epoch_tick_ms: section.epoch_tick_ms,
            first_slice_ms: section.first_slice_ms,
            request_niceness: 10,
            job_niceness: 5,
            compile_niceness: 10,
            max_reply_bytes: bytes(section.max_reply_bytes),
            max_host_call_bytes: 34 << 20,
            max_host_calls: section.max_host_calls,
            write_lock_limit: WriteLockLimit {
                cpu: Duration::from_millis(section.max_turn_cpu_ms.into()),
                wall: Duration::from_millis(section.max_turn_ms.into()),
            },
            max_log_lines: section.max_log_lines,
            max_log_line_bytes: 4096,
            max_component_bytes: bytes(config.limits.max_component_bytes),
            describe_cpu_ms: 1_000,
            describe_timeout_ms: 30_000,
            lanes: config.jobs.lanes.clone(),
            compile: CompileLimits {
                memory_bytes: section.max_compile_memory_bytes,
                cpu: millis(section.max_compile_cpu_ms),
                wall: millis(section.max_compile_ms),
            },
            compiler: None,
            cache_dir: Some(config.runtime_cache_dir()),
            budgets: config.budgets.clone(),
            areas: config.areas.limits.clone(),
            values: config.areas.settings.clone(),
            malware: config.malware.clone(),
        }
    }
}

/// Number of instances in an offline command. Calls run one after the other,
/// but a component may consist of several modules.
const OFFLINE_INSTANCES: u32 = 16;

impl Settings {
    /// Returns the settings for a command that loads one component: compiled code is stored only in
    /// `scratch`, and the number of instances is low, because the address space may be limited.
    pub(super) fn offline(self, scratch: Option<&Path>) -> Self {
        let cache_dir = scratch.map(Path::to_path_buf);
        Self { cache_dir, max_instances: OFFLINE_INSTANCES, ..self }
    }

    /// Returns the limits of one call, given the operator's limits for its
    /// area. Memory is at most that of the pool's slots.
    pub(super) fn call_limits(&self, own: AreaCallLimits) -> CallLimits {
        let memory_bytes = own.max_memory_bytes.map_or(self.max_memory_bytes, bytes);
        CallLimits {
            memory_bytes: memory_bytes.min(self.most_memory_bytes()),
            host_calls: own.max_host_calls.unwrap_or(self.max_host_calls),
            cpu: own.max_cpu_ms.map(|ms| Duration::from_millis(ms.into())),
            turn: WriteLockLimit {
                cpu: own.max_turn_cpu_ms.map_or(self.write_lock_limit.cpu, millis),
                wall: own.max_turn_ms.map_or(self.write_lock_limit.wall, millis),
            },
        }
    }

    /// Returns the maximum memory of an instance of any area, in bytes.
    pub(super) fn most_memory_bytes(&self) -> usize {
        let areas = self.areas.values().filter_map(|limits| limits.max_memory_bytes);
        areas.max().map_or(self.max_memory_bytes, |most| bytes(most).max(self.max_memory_bytes))
    }

    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(u64::from(self.epoch_tick_ms.max(1)))
    }

    pub(super) fn first_slice(&self) -> Duration {
        Duration::from_millis(u64::from(self.first_slice_ms))
    }

    pub(super) fn describe_cpu(&self) -> Duration {
        Duration::from_millis(u64::from(self.describe_cpu_ms))
    }

    pub(super) fn describe_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.describe_timeout_ms))
    }
}

fn millis(configured: u32) -> Duration {
    Duration::from_millis(configured.into())
}

fn bytes(configured: u64) -> usize {
    usize::try_from(configured).unwrap_or(usize::MAX)
}
