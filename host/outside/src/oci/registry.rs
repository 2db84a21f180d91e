//! Client of one OCI registry.

use std::time::Duration;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, RegistryOperation};

use super::{Error, OciReference, credentials};

/// Maximum time to connect to the registry.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum time between two chunks of a registry's response.
const READ: Duration = Duration::from_secs(60);

/// Client of one OCI registry, with the credentials of `docker login`.
pub struct OciRegistry {
    pub(super) client: Client,
    pub(super) auth: RegistryAuth,
}

impl OciRegistry {
    /// Creates a client for the registry of a reference: with TLS, unless it is
    /// on this machine or `plain_http` is set.
    ///
    /// # Errors
    /// Docker's configuration has invalid credentials.
    pub fn of(address: &OciReference, plain_http: bool) -> Result<Self, Error> {
        crate::egress::install_tls_provider();
        let plain = plain_http || address.is_loopback();
        let config = ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            connect_timeout: Some(CONNECT),
            read_timeout: Some(READ),
            // Components do not depend on a platform, so none is selected.
            platform_resolver: None,
            user_agent: concat!("assurance/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|source| Error::Registry {
            registry: address.registry().to_owned(),
            source,
        })?;
        Ok(Self { client, auth: credentials::of(address.registry())? })
    }

    /// Authenticates at the registry for an operation, if the registry requires
    /// it.
    pub(super) async fn enter(
        &self,
        address: &OciReference,
        operation: RegistryOperation,
    ) -> Result<(), Error> {
        let entered = self.client.auth(address.reference(), &self.auth, operation).await;
        entered.map(drop).map_err(|error| self.explain(address, error))
    }

    pub(super) fn explain(&self, address: &OciReference, error: OciDistributionError) -> Error {
        let whom = match self.auth {
            RegistryAuth::Anonymous => "a caller without credentials",
            RegistryAuth::Basic(..) | RegistryAuth::Bearer(_) => {
                "the credentials in Docker's configuration"
            }
        };
        Error::of(address, whom, error)
    }
}
