//! References to artifacts: `oci://REGISTRY/REPOSITORY:TAG`, or
//! `@sha256:DIGEST`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use oci_client::Reference;

use super::Error;

const SCHEME: &str = "oci://";

/// Reference to an artifact in a registry, by tag or by digest. Registry and
/// tag have no defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference(Reference);

impl OciReference {
    /// Returns whether a text begins with `oci://` and so is meant as a
    /// reference.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Returns the last part of the repository's path, as a name of the
    /// artifact.
    #[must_use]
    pub fn name(&self) -> &str {
        let repository = self.0.repository();
        repository.rsplit_once('/').map_or(repository, |(_, name)| name)
    }

    /// Returns the reference to the artifact with this digest in the same
    /// repository.
    pub(super) fn at(&self, digest: String) -> Self {
        Self(self.0.clone_with_digest(digest))
    }

    pub(super) fn reference(&self) -> &Reference {
        &self.0
    }

    /// Returns host and port of the registry.
    pub(super) fn registry(&self) -> &str {
        self.0.resolve_registry()
    }

    /// Returns whether the registry is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.registry().rsplit_once(':').map_or(self.registry(), |(host, _)| host);
        host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

impl FromStr for OciReference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why: &str| Error::Address { text: text.to_owned(), why: why.to_owned() };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| refused("it has no oci://"))?;
        let reference = Reference::from_str(rest).map_err(|error| refused(&error.to_string()))?;
        if !rest.starts_with(&format!("{}/", reference.registry())) {
            return Err(refused("it names no registry"));
        }
        let tag = reference.tag().unwrap_or_default();
        if reference.digest().is_none() && !rest.ends_with(&format!(":{tag}")) {
            return Err(refused("it names neither a tag nor a digest"));
        }
        Ok(Self(reference))
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in [
            "oci://ghcr.io/acme/areas/support-cases:1.2.0".to_owned(),
            format!("oci://127.0.0.1:5000/support-cases@{DIGEST}"),
        ] {
            let address: OciReference = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.name(), "support-cases");
        }
    }

    #[test]
    fn nothing_of_an_address_is_guessed() {
        for (text, why) in [
            ("ghcr.io/acme/notes:1", "no oci://"),
            ("oci://acme/notes:1", "no registry"),
            ("oci://notes:1", "no registry"),
            ("oci://ghcr.io/acme/notes", "neither a tag nor a digest"),
            ("oci://ghcr.io/acme/Notes:1", "invalid"),
            ("oci://ghcr.io/acme/notes@sha256:12", "invalid"),
        ] {
            let refused = text.parse::<OciReference>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
            assert!(refused.contains("oci://REGISTRY/REPOSITORY:TAG"), "{refused}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (registry, expected) in [
            ("localhost:5000", true),
            ("127.0.0.1", true),
            ("127.9.9.9:80", true),
            ("localhost.example.com", false),
            ("10.0.0.1:5000", false),
        ] {
            let address: OciReference = format!("oci://{registry}/notes:1").parse().unwrap();
            assert_eq!(address.is_loopback(), expected, "{registry}");
        }
    }
}
