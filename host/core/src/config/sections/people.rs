//! Configuration of sign-in, sessions and access tokens.

use crate::config::section::section;

section! {
    /// Lifetime and cookie of users' sessions.
    pub struct SessionConfig {
        /// Minutes without a request after which a session ends.
        pub idle_minutes: u32 = 30; min 1,
        /// Hours after which a session ends, even if it is used.
        pub absolute_hours: u32 = 12; min 1,
        /// Send the session cookie over https only. Turn it off only for a loopback
        /// listener.
        pub cookie_secure: bool = true,
        /// Maximum number of sessions of one person; a further sign-in ends the
        /// oldest session.
        pub max_per_user: u32 = 10; min 1,
        /// Lifetime of cached sessions and memberships, in milliseconds.
        /// Revocations by other nodes take effect within it. 0: query the database
        /// for each request.
        pub cache_ms: u32 = 1_000,
    }
}

section! {
    /// Lifetime and number of access tokens for machines.
    pub struct AccessTokensConfig {
        /// Maximum lifetime of a token, in days.
        pub max_days: u32 = 365; min 1,
        /// Maximum number of tokens of a workspace, including tokens that expired
        /// within the last 30 days. Revoked tokens do not count.
        pub max_per_workspace: u32 = 100; min 1,
    }
}

section! {
    /// Hashing (Argon2id) and minimum length of passwords; the defaults of the
    /// hash are OWASP's.
    pub struct PasswordsConfig {
        /// Memory of one password hash, in KiB.
        pub memory_kib: u32 = 19_456,
        /// Passes over the memory of one password hash.
        pub iterations: u32 = 2,
        /// Parallel lanes (Argon2) of one password hash.
        pub parallelism: u32 = 1,
        /// Password hashes that are computed at the same time; further sign-ins
        /// wait.
        pub max_concurrent: u32 = 2; min 1,
        /// Shortest password accepted, in characters.
        pub min_length: u32 = 12,
    }
}

section! {
    /// Consequences of repeated wrong passwords and codes.
    pub struct SignInProtectionConfig {
        /// Wrong attempts on one account from one network (IPv4 /24, IPv6 /64) or
        /// known device before further attempts from there are delayed.
        pub account_free_failures: u32 = 5,
        /// Wrong attempts on one account per day, from all devices and networks
        /// together that the account has not used before. Beyond them, no attempt
        /// from such a device or network is accepted until the day ends.
        pub account_daily_failures: u32 = 100; min 1,
        /// Days for which a device or network counts as known after a sign-in from
        /// it.
        pub known_place_days: u32 = 90,
        /// Wrong attempts from one address before further attempts are delayed.
        pub address_free_failures: u32 = 20,
        /// First delay after too many failures, in seconds; it doubles with every
        /// further failure.
        pub backoff_first_seconds: u32 = 1; min 1,
        /// Longest delay after repeated failures, in seconds.
        pub backoff_max_seconds: u32 = 900,
        /// Minutes without a failure after which earlier failures are forgotten.
        pub forget_minutes: u32 = 60,
        /// Changing a password, and enrolling or removing a second factor, requires
        /// a session that began within this many minutes.
        pub recent_minutes: u32 = 15; min 1,
        /// Wrong second-factor codes after which recovery codes are locked.
        pub recovery_failures: u32 = 5; min 1,
        /// Period in which wrong second-factor codes are counted, in minutes.
        pub recovery_window_minutes: u32 = 15,
        /// Time for which recovery codes stay locked, in minutes; a valid
        /// authenticator code unlocks them earlier.
        pub recovery_lock_minutes: u32 = 60,
    }
}
