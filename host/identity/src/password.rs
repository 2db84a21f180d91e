//! Argon2id on separate threads, with limited concurrency: one hash takes 19
//! MiB and some tens of milliseconds of processor time.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use assurance_core::config;

/// Maximum size of a password in bytes; longer ones are refused without
/// hashing.
pub(super) const MAX_PASSWORD_BYTES: usize = 1_024;

/// Maximum time that one password hash waits for a free thread. A password
/// change computes two, within `limits.request_grace_ms`, and a third one only
/// after a write conflict.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct PasswordHasher {
    params: Params,
    turns: Arc<Semaphore>,
    /// Hash that is verified for unknown accounts, so that the response takes
    /// as long as for known ones; computed on first use.
    decoy: Arc<OnceLock<String>>,
}

/// Reason why a password was not hashed or verified.
#[derive(Debug, thiserror::Error)]
pub(super) enum HashError {
    /// Too many hashes are computed; no thread became free in 3 seconds.
    #[error("too many sign-ins are waiting")]
    Busy,
    /// The hash function failed.
    #[error("hashing failed: {0}")]
    Failed(String),
}

/// Result of verifying a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PasswordCheckResult {
    /// Whether the password is right.
    pub(super) right: bool,
    /// Whether the stored hash has other parameters than configured, so that it
    /// should be replaced.
    pub(super) outdated: bool,
}

impl PasswordHasher {
    pub(super) fn new(settings: &config::PasswordsConfig) -> Self {
        // Cannot fail: the configuration check is stricter than the library.
        let params =
            Params::new(settings.memory_kib, settings.iterations, settings.parallelism, None)
                .unwrap_or_default();
        Self {
            params,
            turns: Arc::new(Semaphore::new(settings.max_concurrent.max(1) as usize)),
            decoy: Arc::new(OnceLock::new()),
        }
    }

    pub(super) async fn hash(&self, password: &str) -> Result<String, HashError> {
        let password = Zeroizing::new(password.to_owned());
        let params = self.params.clone();
        self.in_turn(move || hash(&params, &password)).await?
    }

    /// Verifies a password against the account's stored hash. Without a hash,
    /// takes the same time and fails.
    pub(super) async fn verify(
        &self,
        password: &str,
        stored: Option<String>,
    ) -> Result<PasswordCheckResult, HashError> {
        let known = stored.is_some();
        let password = Zeroizing::new(cut(password).to_owned());
        let (params, decoy) = (self.params.clone(), Arc::clone(&self.decoy));
        self.in_turn(move || {
            // The decoy is created in either case, so that the time of the
            // first attempt does not reveal whether the account exists.
            let decoy = decoy.get_or_init(|| hash(&params, "decoy").unwrap_or_default());
            let verdict = verify(&params, &password, stored.as_deref().unwrap_or(decoy))?;
            Ok(PasswordCheckResult { right: verdict.right && known, ..verdict })
        })
        .await?
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(HashError::Busy) };
        // The thread has the permit, because it computes to the end even if the client disconnects.
        let computing = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        computing.await.map_err(|error| HashError::Failed(error.to_string()))
    }
}

fn argon2(params: &Params) -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
}

fn hash(params: &Params, password: &str) -> Result<String, HashError> {
    argon2(params)
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|error| HashError::Failed(error.to_string()))
}

fn verify(params: &Params, password: &str, stored: &str) -> Result<PasswordCheckResult, HashError> {
    let parsed = PasswordHash::new(stored).map_err(|error| HashError::Failed(error.to_string()))?;
    let right = argon2(params).verify_password(password.as_bytes(), &parsed).is_ok();
    let used = Params::try_from(&parsed).ok();
    let same = |used: &Params| {
        (used.m_cost(), used.t_cost(), used.p_cost())
            == (params.m_cost(), params.t_cost(), params.p_cost())
    };
    Ok(PasswordCheckResult { right, outdated: !used.as_ref().is_some_and(same) })
}

/// Replaces a password above the maximum size by an empty one. No account has
/// such a password, so both are wrong.
fn cut(password: &str) -> &str {
    if password.len() <= MAX_PASSWORD_BYTES { password } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cheap(iterations: u32) -> PasswordHasher {
        PasswordHasher::new(&config::PasswordsConfig {
            memory_kib: 64,
            iterations,
            ..config::PasswordsConfig::default()
        })
    }

    #[tokio::test]
    async fn the_right_password_verifies_and_others_do_not() {
        let passwords = cheap(1);
        let stored = passwords.hash("correct horse").await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{stored}");
        let right = passwords.verify("correct horse", Some(stored.clone())).await.unwrap();
        assert_eq!(right, PasswordCheckResult { right: true, outdated: false });
        assert!(!passwords.verify("correct hors", Some(stored)).await.unwrap().right);
    }

    #[tokio::test]
    async fn without_an_account_nothing_is_right() {
        let verdict = cheap(1).verify("decoy", None).await.unwrap();
        assert!(!verdict.right);
    }

    #[tokio::test]
    async fn a_hash_that_nobody_waits_for_counts_until_it_ends() {
        let passwords = PasswordHasher::new(&config::PasswordsConfig {
            max_concurrent: 1,
            ..config::PasswordsConfig::default()
        });
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let dropped = futures::FutureExt::now_or_never(passwords.in_turn(move || ended.recv()));
        assert!(dropped.is_none());
        assert_eq!(passwords.turns.available_permits(), 0);
        end.send(()).unwrap();
        assert_eq!(passwords.in_turn(|| 7).await.unwrap(), 7);
    }

    #[test]
    fn two_waits_end_before_the_request_does() {
        let grace = config::LimitsConfig::default().request_grace_ms;
        assert!(2 * PATIENCE < Duration::from_millis(grace.into()));
    }

    #[tokio::test]
    async fn a_hash_of_older_parameters_is_told() {
        let stored = cheap(1).hash("correct horse").await.unwrap();
        let verdict = cheap(2).verify("correct horse", Some(stored)).await.unwrap();
        assert_eq!(verdict, PasswordCheckResult { right: true, outdated: true });
    }
}
