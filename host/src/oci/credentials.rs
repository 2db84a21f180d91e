//! Who asks a registry: as whom `docker login` has left word in Docker's own
//! configuration, and nowhere else.

use docker_credential::{CredentialRetrievalError as Failed, DockerCredential};
use oci_client::secrets::RegistryAuth;

use super::Error;

/// Docker Hub is filed under its old address.
const HUB: (&str, &str) = ("index.docker.io", "https://index.docker.io/v1/");

/// The credentials for a registry; none where none are kept.
pub(super) fn of(registry: &str) -> Result<RegistryAuth, Error> {
    let filed = if registry == HUB.0 { HUB.1 } else { registry };
    match docker_credential::get_credential(filed) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => Err(unusable(
            registry,
            "an identity token is kept for it, which is taken by few registries",
        )),
        Err(Failed::ConfigNotFound | Failed::ConfigReadError | Failed::NoCredentialConfigured) => {
            Ok(RegistryAuth::Anonymous)
        }
        // What a helper prints may be a secret.
        Err(Failed::HelperFailure { helper, .. }) => {
            Err(unusable(registry, &format!("docker-credential-{helper} failed")))
        }
        Err(error) => Err(unusable(registry, &error.to_string())),
    }
}

fn unusable(registry: &str, why: &str) -> Error {
    Error::Credentials { registry: registry.to_owned(), why: why.to_owned() }
}
