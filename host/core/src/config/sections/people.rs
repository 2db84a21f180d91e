//! Configuration of sign-in, sessions and access tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lifetime of sessions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// Minutes without a request after which a session ends.
    pub idle_minutes: u32,
    /// Hours after which a session ends, even if it is used.
    pub absolute_hours: u32,
    /// Send the session cookie over https only. Turn it off only for a loopback
    /// listener.
    pub cookie_secure: bool,
    /// Sessions of one person; a further sign-in ends the oldest session.
    pub max_per_user: u32,
    /// Lifetime of cached sessions and memberships, in milliseconds.
    /// Revocations by other nodes take effect within it. 0: query the database
    /// for each request.
    pub cache_ms: u32,
}

impl Default for SessionConfig {
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

/// Access tokens for machines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccessTokensConfig {
    /// Maximum lifetime of a token, in days.
    pub max_days: u32,
    /// Maximum number of tokens of a workspace, including tokens that expired
    /// within the last 30 days. Revoked tokens do not count.
    pub max_per_workspace: u32,
}

impl Default for AccessTokensConfig {
    fn default() -> Self {
        Self { max_days: 365, max_per_workspace: 100 }
    }
}

/// Password hashing (Argon2id); the defaults are OWASP's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PasswordsConfig {
    /// Memory of one hash, in KiB.
    pub memory_kib: u32,
    /// Passes over the memory of one hash.
    pub iterations: u32,
    /// Parallel lanes of one hash.
    pub parallelism: u32,
    /// Hashes that are computed concurrently; further sign-ins wait.
    pub max_concurrent: u32,
    /// Shortest password accepted, in characters.
    pub min_length: u32,
}

impl Default for PasswordsConfig {
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

/// Consequences of repeated wrong passwords and codes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignInConfig {
    /// Wrong attempts on one account from one network (IPv4 /24, IPv6 /64) or
    /// known device before further attempts from there are delayed.
    pub account_free_failures: u32,
    /// Wrong attempts on one account per day, from all devices and networks
    /// together that the account has not used before. Beyond them, no attempt
    /// from such a device or network is accepted until the day ends.
    pub account_daily_failures: u32,
    /// Days for which a device or network counts as known after a sign-in from
    /// it.
    pub known_place_days: u32,
    /// Wrong attempts from one address before further attempts are delayed.
    pub address_free_failures: u32,
    /// First delay after too many failures, in seconds; it doubles with every
    /// further failure.
    pub backoff_first_seconds: u32,
    /// Longest delay after repeated failures, in seconds.
    pub backoff_max_seconds: u32,
    /// Minutes without a failure after which earlier failures are forgotten.
    pub forget_minutes: u32,
    /// Changing a password, and enrolling or removing a second factor, requires
    /// a session that began within this many minutes.
    pub recent_minutes: u32,
    /// Wrong second-factor codes after which recovery codes are locked.
    pub recovery_failures: u32,
    /// Period in which wrong second-factor codes are counted, in minutes.
    pub recovery_window_minutes: u32,
    /// Time for which recovery codes stay locked, in minutes; a valid
    /// authenticator code unlocks them earlier.
    pub recovery_lock_minutes: u32,
}

impl Default for SignInConfig {
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
