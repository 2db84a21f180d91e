//! Reads the input of commands: files, keys, standard input, passwords.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::output;
use crate::http::json as strict_json;
use assurance_core::config::files;
use assurance_core::domain::area::Violation;
use assurance_core::signing::Ed25519PrivateKey;

/// Reads a text file; `-` reads standard input.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read; is the path right?", path.display()))
}

/// Reads a JSON file as strictly as the service reads requests; `-` reads standard input.
pub(super) fn json(path: &Path) -> anyhow::Result<Json> {
    let text = text(path)?;
    let parsed = strict_json::parse(&text).map_err(|Violation { pointer, message }| {
        let place = if pointer.is_empty() { "the document" } else { pointer.as_str() };
        anyhow::anyhow!("{}: {place} {message}; fix the file", path.display())
    });
    Ok(parsed?.value)
}

/// Writes a JSON document to a file, or to standard output without `out`.
pub(super) fn write_json(value: &Json, out: Option<&Path>) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    match out {
        Some(path) => std::fs::write(path, text + "\n").with_context(|| {
            format!("{} cannot be written; is its folder there, and yours?", path.display())
        }),
        None => {
            output::line(text);
            Ok(())
        }
    }
}

/// Reads a private key from a PEM file that only this user can read.
pub(super) fn signing_key(path: &Path) -> anyhow::Result<Ed25519PrivateKey> {
    let pem = files::read_private(path)?;
    let pem = std::str::from_utf8(&pem).context("the key file is not text")?;
    Ed25519PrivateKey::from_pem(pem).with_context(|| format!("{} cannot be used", path.display()))
}

/// Reads the first line of standard input as the password, or creates a random
/// password.
pub(super) fn password(from_stdin: bool) -> anyhow::Result<GivenOrGeneratedPassword> {
    if !from_stdin {
        return Ok(GivenOrGeneratedPassword { text: generated_password(), generated: true });
    }
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().read_line(&mut text).context("standard input cannot be read")?;
    let line = Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned());
    if line.is_empty() {
        anyhow::bail!("no password on standard input; pipe one in, or leave --password-stdin out");
    }
    Ok(GivenOrGeneratedPassword { text: line, generated: false })
}

/// A password that was read or generated; a generated one must be printed.
pub(super) struct GivenOrGeneratedPassword {
    pub(super) text: Zeroizing<String>,
    generated: bool,
}

impl GivenOrGeneratedPassword {
    /// Returns the generated password as a value to print; nothing if the password was read from
    /// standard input.
    pub(super) fn output_values(&self) -> Vec<(&'static str, Json)> {
        if self.generated { vec![("password", json!(*self.text))] } else { Vec::new() }
    }
}

/// Returns a random password: 24 characters from an alphabet of 32, or 120
/// bits.
pub(super) fn generated_password() -> Zeroizing<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
    let random: Zeroizing<[u8; 24]> = Zeroizing::new(rand::random());
    Zeroizing::new(random.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_given_twice_is_refused_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("envelope.json");
        std::fs::write(&file, r#"{"records": [{"summary": "a", "summary": "b"}]}"#).unwrap();
        let error = json(&file).unwrap_err().to_string();
        assert!(error.contains("/records/0/summary is given more than once"), "{error}");
        std::fs::write(&file, r#"{"a": "b"}"#).unwrap();
        assert_eq!(json(&file).unwrap()["a"], "b");
    }
}
