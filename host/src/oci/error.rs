//! Why an artifact could not be brought or sent, each with the way out.

use oci_client::errors::{DigestError, OciDistributionError, OciEnvelope, OciErrorCode};

use super::Address;

/// What went wrong between this machine and a registry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error(
        "{text} is not where an artifact is: {why}; write oci://REGISTRY/REPOSITORY:TAG or \
         oci://REGISTRY/REPOSITORY@sha256:DIGEST"
    )]
    Address {
        /// As it was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A push names a digest.
    #[error("what is pushed gets its digest by it; push to a tag, then deploy by the digest told")]
    PushToDigest,
    /// Docker's configuration has something that cannot be used.
    #[error(
        "no credentials for {registry}: {why}; mend Docker's config.json, for instance with \
         `docker logout {registry}` and `docker login {registry}`"
    )]
    Credentials {
        /// Which registry.
        registry: String,
        /// Why they cannot be used.
        why: String,
    },
    /// Nobody is there, or nobody who speaks so.
    #[error(
        "no registry answers at {url}; is the address right, and reachable from here? One that \
         has no TLS and is not on this machine needs --plain-http"
    )]
    Unreachable {
        /// Where it was asked.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// The registry knows who may and who may not.
    #[error(
        "{registry} refuses {whom}; `docker login {registry}` as somebody who may, and try again"
    )]
    Refused {
        /// Which registry.
        registry: String,
        /// As whom it was asked.
        whom: &'static str,
    },
    /// Nothing is under that name.
    #[error(
        "there is no {address}; see what is there: the registry lists a repository's tags at \
         /v2/REPOSITORY/tags/list, and `assurance area push` prints the digest"
    )]
    Unknown {
        /// What was asked for.
        address: String,
    },
    /// The artifact is something else.
    #[error(
        "{address} is not a component: {what}; push components with `assurance area push FILE \
         oci://…`, or `wkg oci push`"
    )]
    OtherKind {
        /// What was asked for.
        address: String,
        /// What it is.
        what: String,
    },
    /// What is to be pushed is something else.
    #[error("that is not a component: {0}; push what `assurance area check` takes")]
    NoComponent(String),
    /// The component is larger than may be.
    #[error(
        "the component has {bytes} bytes, and {most} is the most that is taken; make it smaller, \
         or raise limits.max_component_bytes here and where it is served"
    )]
    TooLarge {
        /// How large it is, or says it is.
        bytes: u64,
        /// `limits.max_component_bytes`.
        most: u64,
    },
    /// The registry sent something else than what the digest says.
    #[error(
        "what the registry has for {address} is not what its digest says: it is damaged or was \
         changed. Nothing was deployed; push it again, and find out who may write there"
    )]
    Tampered {
        /// What was asked for.
        address: String,
        /// The two digests.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else that a registry may say.
    #[error("{registry} did not do what was asked; its own log may say more")]
    Registry {
        /// Which registry.
        registry: String,
        /// In its words.
        #[source]
        source: OciDistributionError,
    },
}

impl Error {
    /// What the client's error means for who asked.
    pub(super) fn of(address: &Address, whom: &'static str, error: OciDistributionError) -> Self {
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
                Some(Meaning::Unknown) => Self::Unknown { address: address.to_string() },
                Some(Meaning::Refused) => Self::Refused { registry, whom },
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

    /// What an error in the middle of a layer means.
    pub(super) fn of_stream(address: &Address, error: std::io::Error) -> Self {
        if matches!(error.get_ref(), Some(inner) if inner.is::<DigestError>()) {
            return Self::Tampered { address: address.to_string(), source: error.into() };
        }
        Self::Registry { registry: address.registry().to_owned(), source: error.into() }
    }
}

enum Meaning {
    Unknown,
    Refused,
}

fn meaning(envelope: &OciEnvelope) -> Option<Meaning> {
    envelope.errors.iter().find_map(|error| match error.code {
        OciErrorCode::ManifestUnknown
        | OciErrorCode::NameUnknown
        | OciErrorCode::NotFound
        | OciErrorCode::ManifestBlobUnknown
        | OciErrorCode::BlobUnknown => Some(Meaning::Unknown),
        OciErrorCode::Unauthorized | OciErrorCode::Denied => Some(Meaning::Refused),
        _ => None,
    })
}
