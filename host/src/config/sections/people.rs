//! How people sign in and stay signed in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long people stay signed in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// A session unused for so many minutes ends.
    pub idle_minutes: u32,
    /// Every session ends after so many hours.
    pub absolute_hours: u32,
    /// Send the cookie over https only; off only for a loopback listener.
    pub cookie_secure: bool,
    /// Sessions a person may have; a new one beyond them ends the oldest.
    pub max_per_user: u32,
    /// How long, in milliseconds, a node may answer from what it knows of
    /// sessions and members: other nodes' revocations show within it; 0: ask
    /// the database every time.
    pub cache_ms: u32,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            idle_minutes: 30,
            absolute_hours: 12,
            cookie_secure: true,
            max_per_user: 10,
            cache_ms: 1_000,
        }
    }
}

/// How passwords are hashed (Argon2id); the defaults are OWASP's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Passwords {
    /// Memory of one hash, in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub iterations: u32,
    /// Lanes of one hash.
    pub parallelism: u32,
    /// Hashes computed at a time; further sign-ins wait.
    pub max_concurrent: u32,
    /// Shortest password accepted, in characters.
    pub min_length: u32,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            memory_kib: 19_456,
            iterations: 2,
            parallelism: 1,
            max_concurrent: 2,
            min_length: 12,
        }
    }
}

/// What repeated wrong passwords and codes lead to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// Wrong attempts on one account from one network (IPv4 /24, IPv6 /64) or
    /// known device before the next from there has to wait.
    pub account_free_failures: u32,
    /// Wrong attempts on one account in a day from all devices and networks
    /// together that it has not signed in from before; then none is taken from
    /// such a place until the day is over.
    pub account_daily_failures: u32,
    /// An account is known from a device or network for so many days after it
    /// signed in from there.
    pub known_place_days: u32,
    /// Wrong attempts from one address before the next has to wait.
    pub address_free_failures: u32,
    /// The first wait, in seconds; it doubles with every failure.
    pub backoff_first_seconds: u32,
    /// The longest wait, in seconds.
    pub backoff_max_seconds: u32,
    /// Failures are forgotten after so many minutes without one.
    pub forget_minutes: u32,
    /// A second factor is enrolled or removed only in a session that began
    /// within so many minutes.
    pub recent_minutes: u32,
    /// Wrong second-factor codes that lock the recovery codes.
    pub recovery_failures: u32,
    /// The time within which they count, in minutes.
    pub recovery_window_minutes: u32,
    /// How long recovery codes stay locked, in minutes; a valid
    /// authenticator code unlocks them before.
    pub recovery_lock_minutes: u32,
}

impl Default for SignIn {
    fn default() -> Self {
        Self {
            account_free_failures: 5,
            account_daily_failures: 100,
            known_place_days: 90,
            address_free_failures: 20,
            backoff_first_seconds: 1,
            backoff_max_seconds: 900,
            forget_minutes: 60,
            recent_minutes: 15,
            recovery_failures: 5,
            recovery_window_minutes: 15,
            recovery_lock_minutes: 60,
        }
    }
}
