//! Records the last use of sessions and access tokens, at most once per
//! interval.

use super::IdentityService;
use assurance_core::domain::id::{AccessTokenId, SessionId};
use assurance_core::domain::time::Timestamp;
use assurance_store::connection::Connection;
use assurance_store::{self as store, access_tokens, sessions};

/// Credential whose use is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum UsedCredential {
    /// A session, by its public id.
    Session(SessionId),
    /// An access token, by its public id.
    Token(AccessTokenId),
}

impl UsedCredential {
    async fn write(
        self,
        mut writer: Connection,
        now: Timestamp,
        every_ms: i64,
    ) -> Result<(), store::Error> {
        let before = now.plus_ms(-every_ms);
        match self {
            Self::Session(id) => sessions::touch(&mut writer, id, now, before).await?,
            Self::Token(id) => access_tokens::touch(&mut writer, id, now, before).await?,
        }
        writer.release();
        Ok(())
    }
}

impl IdentityService {
    /// Records a use, unless a use within the last `every_ms` milliseconds is
    /// already recorded. If another call holds SQLite's write lock, the use is
    /// recorded in the background, so that requests that only read do not wait.
    /// Returns whether the use is or will be recorded. An error is only logged;
    /// the request continues.
    pub(super) async fn note_use(
        &self,
        used: UsedCredential,
        now: Timestamp,
        every_ms: i64,
    ) -> bool {
        let store = self.0.store.clone();
        let written = match store.writer_if_free().await {
            Ok(Some(writer)) => used.write(writer, now, every_ms).await,
            Ok(None) => {
                tokio::spawn(async move {
                    let written = async { used.write(store.writer().await?, now, every_ms).await };
                    written.await.unwrap_or_else(not_written);
                });
                Ok(())
            }
            Err(error) => Err(error),
        };
        written.map_err(not_written).is_ok()
    }
}

fn not_written(error: store::Error) {
    tracing::warn!(%error, "cannot record the use of a session or token");
}
