//! The last use of a session or an access token, written at most so often.

use super::Identity;
use assurance_core::domain::id::{AccessTokenId, SessionId};
use assurance_core::domain::time::Timestamp;
use assurance_store::connection::Connection;
use assurance_store::{self as store, access_tokens, sessions};

/// What was used.
#[derive(Clone, Copy, Debug)]
pub(super) enum UsedCredential {
    /// A session.
    Session(SessionId),
    /// An access token.
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

impl Identity {
    /// Writes a use, unless one within `every_ms` is written: in the background
    /// if others write, since a request that reads does not wait for them.
    /// Returns whether it is written or about to be. A failure is logged only:
    /// it is no reason to refuse the request.
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
    tracing::warn!(%error, "the use of a session or token could not be noted");
}
