//! Hears from the database that another node has moved an area's pointer.
//! Nobody may rely on it: a notice can be lost with its connection, so who
//! listens also looks.

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::deployments::CHANNEL;
use super::error::Error;
use super::{Databases, Store};

/// An ear at the database; a deaf one on SQLite, which has no notices.
#[derive(Debug)]
pub struct Notices(Option<PgListener>);

impl Store {
    /// Begins to listen, on a connection of its own.
    pub async fn notices(&self) -> Result<Notices, Error> {
        let Databases::Postgres { options, .. } = &self.0.databases else {
            return Ok(Notices(None));
        };
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(self.0.timeout)
            .connect_lazy_with((**options).clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Notices(Some(listener)))
    }
}

impl Notices {
    /// Waits for the next notice; for ever, where there are none.
    pub async fn next(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Some(listener) => Ok(listener.recv().await.map(drop)?),
            None => std::future::pending().await,
        }
    }
}
