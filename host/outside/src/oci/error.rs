//! Errors of pulling and pushing artifacts; each message includes the fix.

use oci_client::errors::{DigestError, OciDistributionError, OciEnvelope, OciErrorCode};

use super::OciReference;

/// Error of pulling or pushing an artifact.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference to an artifact is invalid.
    #[error(
        "{text} is not a reference to an artifact: {why}; write oci://REGISTRY/REPOSITORY:TAG or \
         oci://REGISTRY/REPOSITORY@sha256:DIGEST"
    )]
    Address {
        /// The invalid reference, as the caller wrote it.
        text: String,
        /// Reason why the reference is invalid.
        why: String,
    },
    /// A push needs a tag, not a digest.
    #[error(
        "the digest is known only after the push; push to a tag, then deploy by the printed digest"
    )]
    PushToDigest,
    /// Docker's configuration has no usable credentials for the registry.
    #[error(
        "no credentials for {registry}: {why}; fix Docker's config.json, for instance with \
         `docker logout {registry}` and `docker login {registry}`"
    )]
    Credentials {
        /// Host and port of the registry.
        registry: String,
        /// Reason why the credentials cannot be used.
        why: String,
    },
    /// The registry cannot be reached, or does not speak the registry protocol.
    #[error(
        "no registry responds at {url}; check the address and the network. A registry without TLS \
         on another machine needs --plain-http"
    )]
    Unreachable {
        /// Address of the registry that the request was sent to.
        url: String,
        /// Error of the connection.
        #[source]
        source: reqwest::Error,
    },
    /// The registry denies access to the artifact.
    #[error(
        "{registry} refuses {whom}; run `docker login {registry}` with an account that has access"
    )]
    Refused {
        /// Host and port of the registry.
        registry: String,
        /// Description of the credentials that were used, for the message.
        whom: &'static str,
    },
    /// The registry has no such artifact.
    #[error(
        "{address} does not exist; the registry lists a repository's tags at \
         /v2/REPOSITORY/tags/list, and `assurance area push` prints the digest"
    )]
    Unknown {
        /// Reference of the artifact.
        address: String,
    },
    /// The artifact is not a component.
    #[error(
        "{address} is not a component: {what}; push components with `assurance area push FILE \
         oci://…`, or `wkg oci push`"
    )]
    OtherKind {
        /// Reference of the artifact.
        address: String,
        /// How the artifact differs from a component, for example in its media
        /// type.
        what: String,
    },
    /// The file to push is not a component.
    #[error("not a component: {0}; push a file that `assurance area check` accepts")]
    NoComponent(String),
    /// The component exceeds the size limit.
    #[error(
        "the component has {bytes} bytes; the limit is {most}. Make it smaller, or raise \
         limits.max_component_bytes here and on the service"
    )]
    TooLarge {
        /// Size of the component, or the size that the manifest declares.
        bytes: u64,
        /// Value of `limits.max_component_bytes`.
        most: u64,
    },
    /// The content of the artifact does not match its digest.
    #[error(
        "the content of {address} does not match its digest: it is damaged or was changed. \
         Nothing was deployed; push it again, and check who can write to the repository"
    )]
    Tampered {
        /// Reference of the artifact.
        address: String,
        /// The error with the two digests.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Any other error of the registry.
    #[error("{registry} did not process the request; see the registry's log")]
    Registry {
        /// Host and port of the registry.
        registry: String,
        /// The registry's error.
        #[source]
        source: OciDistributionError,
    },
}

impl Error {
    /// Converts an error of the registry client. `whom` describes the
    /// credentials that were used.
    pub(super) fn of(
        address: &OciReference,
        whom: &'static str,
        error: OciDistributionError,
    ) -> Self {
        let registry = address.registry().to_owned();
        match error {
            OciDistributionError::RequestError(source)
                if source.is_connect() || source.is_timeout() =>
            {
                let url = source.url().map_or(registry, |url| url.origin().ascii_serialization());
                Self::Unreachable { url, source }
            }
            OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_) => Self::Refused { registry, whom },
            OciDistributionError::RegistryError { ref envelope, .. } => match meaning(envelope) {
                Some(OciErrorClass::Unknown) => Self::Unknown { address: address.to_string() },
                Some(OciErrorClass::Refused) => Self::Refused { registry, whom },
                None => Self::Registry { registry, source: error },
            },
            OciDistributionError::ServerError { code: 401 | 403, .. } => {
                Self::Refused { registry, whom }
            }
            OciDistributionError::ServerError { code: 404, .. } => {
                Self::Unknown { address: address.to_string() }
            }
            OciDistributionError::DigestError(source) => {
                Self::Tampered { address: address.to_string(), source: source.into() }
            }
            OciDistributionError::IoError(source) => Self::of_stream(address, source),
            OciDistributionError::ImageIndexParsingNoPlatformResolverError => Self::OtherKind {
                address: address.to_string(),
                what: "it is an index of several artifacts; name one by its digest".to_owned(),
            },
            source => Self::Registry { registry, source },
        }
    }

    /// Converts an error while reading the artifact's layer.
    pub(super) fn of_stream(address: &OciReference, error: std::io::Error) -> Self {
        if matches!(error.get_ref(), Some(inner) if inner.is::<DigestError>()) {
            return Self::Tampered { address: address.to_string(), source: error.into() };
        }
        Self::Registry { registry: address.registry().to_owned(), source: error.into() }
    }
}

enum OciErrorClass {
    Unknown,
    Refused,
}

fn meaning(envelope: &OciEnvelope) -> Option<OciErrorClass> {
    envelope.errors.iter().find_map(|error| match error.code {
        OciErrorCode::ManifestUnknown
        | OciErrorCode::NameUnknown
        | OciErrorCode::NotFound
        | OciErrorCode::ManifestBlobUnknown
        | OciErrorCode::BlobUnknown => Some(OciErrorClass::Unknown),
        OciErrorCode::Unauthorized | OciErrorCode::Denied => Some(OciErrorClass::Refused),
        _ => None,
    })
}
