//! Writes mail into a folder if no mail server is configured.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lettre::Message;
use uuid::Uuid;

use super::MailError;
use assurance_core::config::files;
use assurance_core::domain::time::Timestamp;

/// Writes the message as a file that mail programs can open and only its owner
/// can read. Readers of the folder never see a partial file.
pub(super) async fn keep(
    folder: &Path,
    message: &Message,
    id: Uuid,
    at: Timestamp,
) -> Result<(), MailError> {
    let name = format!("{}-{id}.eml", at.0);
    let (folder, content) = (folder.to_owned(), message.formatted());
    let write = move || write(&folder, &name, &content);
    let path = tokio::task::spawn_blocking(write)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(|error| MailError::Unavailable(format!("the mail folder: {error}")))?;
    tracing::info!(
        file = %path.display(),
        "no mail server is configured (mail.smtp_url): a message is in this file"
    );
    Ok(())
}

fn write(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name);
    files::replace_private(&path, content, false)?;
    Ok(path)
}
