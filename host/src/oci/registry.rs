//! A connection to one registry.

use std::time::Duration;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, RegistryOperation};

use super::{Address, Error, credentials};

/// Until it is reached.
const CONNECT: Duration = Duration::from_secs(10);
/// Between two pieces of its answer.
const READ: Duration = Duration::from_secs(60);

/// A registry, asked as `docker login` has left word.
pub struct Registry {
    pub(super) client: Client,
    pub(super) auth: RegistryAuth,
}

impl Registry {
    /// Prepares to ask the registry of an address: over TLS, unless it is on
    /// this machine or `plain_http` is wished.
    ///
    /// # Errors
    /// Docker's configuration has credentials that cannot be used.
    pub fn of(address: &Address, plain_http: bool) -> Result<Self, Error> {
        crate::egress::install_tls_provider();
        let plain = plain_http || address.is_loopback();
        let config = ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            connect_timeout: Some(CONNECT),
            read_timeout: Some(READ),
            // An area is for no platform.
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

    /// Gets leave to do something, where the registry asks for that.
    pub(super) async fn enter(
        &self,
        address: &Address,
        operation: RegistryOperation,
    ) -> Result<(), Error> {
        let entered = self.client.auth(address.reference(), &self.auth, operation).await;
        entered.map(drop).map_err(|error| self.explain(address, error))
    }

    pub(super) fn explain(&self, address: &Address, error: OciDistributionError) -> Error {
        let whom = match self.auth {
            RegistryAuth::Anonymous => "a caller without credentials",
            RegistryAuth::Basic(..) | RegistryAuth::Bearer(_) => {
                "the credentials in Docker's configuration"
            }
        };
        Error::of(address, whom, error)
    }
}
