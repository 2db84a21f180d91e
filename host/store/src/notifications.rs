//! Database notifications of moved live versions. A notification can be lost
//! with its connection, so receivers must also poll.

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::deployments::CHANNEL;
use super::error::Error;
use super::{ConnectionPools, Store};

/// A subscription to PostgreSQL's notifications that an area's live version or
/// trial has changed. On SQLite it never receives one.
#[derive(Debug)]
pub struct NotificationListener(Option<PgListener>);

impl Store {
    /// Subscribes, on a separate connection, to notifications that an area's
    /// live version or trial has changed.
    pub async fn notices(&self) -> Result<NotificationListener, Error> {
        let ConnectionPools::Postgres { options, .. } = &self.0.databases else {
            return Ok(NotificationListener(None));
        };
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(self.0.timeout)
            .connect_lazy_with((**options).clone());
        let listening = Box::pin(async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(CHANNEL).await?;
            Ok(NotificationListener(Some(listener)))
        });
        self.in_time(listening).await
    }
}

impl NotificationListener {
    /// Waits for the next notification; never returns on SQLite, which has
    /// none.
    pub async fn next(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Some(listener) => Ok(listener.recv().await.map(drop)?),
            None => std::future::pending().await,
        }
    }
}
