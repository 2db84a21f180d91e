//! A Redis or Valkey server that holds the rate limits of a fleet, instead of PostgreSQL.

use std::time::Duration;

use assurance_core::config::SecretString;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisError, Script};
use tokio::sync::OnceCell;

/// Maximum number of keys in one call of the script, because a script blocks the Redis server.
const KEYS_PER_CALL: usize = 1_000;

/// Maximum time to connect to the Redis server, and of one script call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Lua script that charges each of `KEYS` with its cost (`ARGV[2]`, …) in microseconds, with a
/// maximum debt of `ARGV[1]`. Returns the microseconds until each has its full quota again. Doubles
/// of Lua are exact for these times until the year 2255.
const CHARGE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local waits = {}
for index, key in ipairs(KEYS) do
    local from = math.max(tonumber(redis.call('GET', key) or '') or 0, now)
    local wait = math.min(from - now + ARGV[index + 1], tonumber(ARGV[1]))
    redis.call('SET', key, string.format('%.0f', now + wait), 'PX', math.ceil(wait / 1000) + 1)
    waits[index] = wait
end
return waits
";

/// Error of the Redis server that holds the rate limits.
#[derive(Debug, thiserror::Error)]
pub enum RateStoreError {
    /// `rates.redis_url` is no URL of a Redis server.
    #[error(
        "rates.redis_url is not valid; write it as redis://USER:PASSWORD@HOST:6379/0, or with \
         rediss:// for TLS"
    )]
    Url,
    /// The Redis server refused a command or cannot be reached.
    #[error("the server of rates.redis_url: {0}")]
    Server(#[from] RedisError),
}

/// Client of the Redis server that holds a fleet's rate limits. It connects at the first use, and
/// again after the connection was lost.
pub struct RateStore {
    client: Client,
    connection: OnceCell<ConnectionManager>,
    charge: Script,
}

impl std::fmt::Debug for RateStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The client contains the password.
        formatter.write_str("RateStore")
    }
}

impl RateStore {
    /// Creates a client of the Redis server without connecting.
    ///
    /// # Errors
    /// The URL is not valid.
    pub fn new(url: &SecretString) -> Result<Self, RateStoreError> {
        // The error would contain the URL and its password.
        let client = Client::open(url.reveal()).map_err(|_| RateStoreError::Url)?;
        Ok(Self { client, connection: OnceCell::new(), charge: Script::new(CHARGE) })
    }

    /// Charges rate-limit keys in the Redis server. A cost is the time in microseconds in which the
    /// key regains it; no key owes more than `max_debt_us`. Returns the microseconds until each key
    /// has its full quota again, in the order of `charges`.
    ///
    /// # Errors
    /// The server cannot be reached or refuses; some of the keys may have been charged.
    pub async fn charge(
        &self,
        charges: &[(String, i64)],
        max_debt_us: i64,
    ) -> Result<Vec<i64>, RateStoreError> {
        let mut connection = self.connection().await?;
        let mut waits = Vec::with_capacity(charges.len());
        for part in charges.chunks(KEYS_PER_CALL) {
            let mut call = self.charge.prepare_invoke();
            call.arg(max_debt_us);
            for (key, cost_us) in part {
                call.key(format!("assurance:rate:{key}")).arg(*cost_us);
            }
            waits.extend(call.invoke_async::<Vec<i64>>(&mut connection).await?);
        }
        Ok(waits)
    }

    async fn connection(&self) -> Result<ConnectionManager, RedisError> {
        let connect = || async {
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(TIMEOUT))
                .set_response_timeout(Some(TIMEOUT))
                .set_number_of_retries(0);
            ConnectionManager::new_with_config(self.client.clone(), config).await
        };
        self.connection.get_or_try_init(connect).await.cloned()
    }
}
