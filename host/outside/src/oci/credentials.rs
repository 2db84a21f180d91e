//! Credentials for registries, from Docker's own configuration (`docker login`)
//! only.

use docker_credential::{CredentialRetrievalError as Failed, DockerCredential};
use oci_client::secrets::RegistryAuth;

use super::Error;

/// Docker Hub: its registry, and the former address under which Docker stores
/// its credentials.
const HUB: (&str, &str) = ("index.docker.io", "https://index.docker.io/v1/");

/// Returns the credentials for a registry; anonymous if there are none.
pub(super) fn of(registry: &str) -> Result<RegistryAuth, Error> {
    let filed = if registry == HUB.0 { HUB.1 } else { registry };
    match docker_credential::get_credential(filed) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => Err(unusable(
            registry,
            "Docker's configuration has an identity token, which few registries accept",
        )),
        Err(Failed::ConfigNotFound | Failed::ConfigReadError | Failed::NoCredentialConfigured) => {
            Ok(RegistryAuth::Anonymous)
        }
        // The output of a credential helper may contain a secret, so it is not
        // quoted.
        Err(Failed::HelperFailure { helper, .. }) => {
            Err(unusable(registry, &format!("docker-credential-{helper} failed")))
        }
        Err(error) => Err(unusable(registry, &error.to_string())),
    }
}

fn unusable(registry: &str, why: &str) -> Error {
    Error::Credentials { registry: registry.to_owned(), why: why.to_owned() }
}
