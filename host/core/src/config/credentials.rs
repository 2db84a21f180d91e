//! Access keys of an S3-compatible service, from a file in the format of AWS's
//! tools (`~/.aws/credentials`).

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::SecretString;
use super::files::{self, PrivateFileError};

/// Access key and secret for an S3-compatible service.
#[derive(Clone, Debug)]
pub struct S3AccessKey {
    /// Access key id (`aws_access_key_id`), which is not secret.
    pub id: String,
    /// Secret access key (`aws_secret_access_key`).
    pub secret: SecretString,
    /// Session token of temporary credentials; `None` for permanent ones.
    pub session_token: Option<SecretString>,
}

/// Errors of reading the file `blobs.credentials_file`; each message includes
/// the fix.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsFileError {
    /// The credentials file cannot be read, or other users can read it.
    #[error("blobs.credentials_file: {0}")]
    File(#[from] PrivateFileError),
    /// The profile `[default]` of the credentials file lacks a required entry.
    #[error(
        "blobs.credentials_file: {path} has no {name} in its profile [default]; add a line like \
         {name} = …"
    )]
    Missing {
        /// Path of the file that `blobs.credentials_file` names.
        path: PathBuf,
        /// Name of the entry that the profile `[default]` lacks, such as
        /// `aws_access_key_id`.
        name: &'static str,
    },
}

/// Reads the access key in the profile `[default]` of a credentials file.
///
/// # Errors
/// The file is missing, other users can read it, or it has no key.
pub fn read(path: &Path) -> Result<S3AccessKey, CredentialsFileError> {
    let content = files::read_private(path)?;
    let text = Zeroizing::new(String::from_utf8_lossy(&content).into_owned());
    let needed = |name: &'static str| {
        let missing = || CredentialsFileError::Missing { path: path.to_owned(), name };
        value(&text, name).ok_or_else(missing)
    };
    Ok(S3AccessKey {
        id: needed("aws_access_key_id")?,
        secret: needed("aws_secret_access_key")?.into(),
        session_token: value(&text, "aws_session_token").map(SecretString::from),
    })
}

/// Returns the value of the entry `name` in the profile `[default]`; `None` if
/// it is missing or empty.
fn value(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().map(str::trim);
    let profile = lines.skip_while(|line| *line != "[default]").skip(1);
    let mut pairs = profile
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()));
    let (_, value) = pairs.find(|(key, value)| *key == name && !value.is_empty())?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn reading(content: &str, mode: u32) -> Result<S3AccessKey, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        read(&file).map_err(|error| error.to_string())
    }

    const BOTH: &str = "# of the fleet\n[other]\naws_access_key_id = no\n\n[default]\n\
        aws_access_key_id = AKIA1\naws_secret_access_key=a/b+c=\n[last]\naws_session_token = no\n";

    #[test]
    fn the_default_profile_s_key_is_read_and_never_printed() {
        let key = reading(BOTH, 0o600).unwrap();
        assert_eq!((key.id.as_str(), key.secret.reveal()), ("AKIA1", "a/b+c="));
        assert!(key.session_token.is_none());
        assert!(!format!("{key:?}").contains("a/b+c="));
    }

    #[test]
    fn what_is_wrong_with_the_file_is_told_with_the_way_out() {
        let exposed = reading(BOTH, 0o644).unwrap_err();
        assert!(exposed.contains("blobs.credentials_file: ") && exposed.contains("chmod 600"));
        let half = reading("[default]\naws_access_key_id = AKIA1\n", 0o600).unwrap_err();
        assert!(half.contains("has no aws_secret_access_key"), "{half}");
        let elsewhere = reading("aws_access_key_id = AKIA1\n", 0o600).unwrap_err();
        assert!(elsewhere.contains("[default]"), "{elsewhere}");
    }
}
