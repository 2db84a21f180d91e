//! The description of a deployment in an evidence record.

use area_sdk::prelude::*;

use crate::purl::Purl;
use crate::reading;
use crate::text::{bounded, is_commit};

/// Text for the OpenAPI document: format of evidence about deployments.
pub(crate) const DESCRIPTION: &str = "Deployments are evidence records of kind `deployment`. The \
    description is a JSON object: the content of the upload whose SHA-256 is the record's \
    `content_sha256`, otherwise the record's `summary`:\n\n\
    - `service`: id or name; without it the service whose only repository this is\n\
    - `environment`: `production`, …\n\
    - `repository`: id or name; without it what `subject_key` names (a leading `repository:` is \
    dropped)\n\
    - `commit_sha`, `branch_ref`; without a commit the envelope's revision, where it is one\n\
    - `image_digest`: `sha256:…`; without it one that `subject_key` or `source_ref` ends in\n\
    - `configuration_sha256`\n\
    - `resource_keys`: up to 100 names of what it runs on\n\
    - `event_id`: the deployment's own id; without it the envelope's external id\n\
    - `packages`: up to 1000 of `{purl, reachability}`, `reachability` being `reachable`, \
    `unreachable` or `unknown`\n\n\
    All members are optional; others are ignored. Content that is uploaded after the record is \
    imported when it is ready. Evidence that the same commit, image and configuration still run \
    for the same service, environment and resources updates the deployment; other evidence \
    replaces it. `stale` is true if the latest evidence is more than 7 days old. \
    `confidence_basis` is `content`, `summary` or `record`: the place of the description.";

/// Maximum number of resource keys stored with a deployment.
const MOST_KEYS: usize = 100;
/// Maximum number of packages stored with a deployment.
const MOST_PACKAGES: usize = 1_000;
/// Maximum size of a name in the description of a deployment (service, environment, …), in bytes.
const MAX_WORD: usize = 300;

/// Whether the code of a deployed package is reached at run time, according to the evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reachability {
    Reachable,
    Unreachable,
    /// The evidence does not say whether the code is reached.
    #[default]
    Unknown,
}

/// Description of a deployment: a JSON object in the content or the summary of an evidence record.
/// Members under further names, such as `service_id`, count if the first name is missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeploymentDescription {
    pub(crate) service: Option<String>,
    service_id: Option<String>,
    service_name: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) repository: Option<String>,
    repository_id: Option<String>,
    pub(crate) commit_sha: Option<String>,
    commit: Option<String>,
    revision: Option<String>,
    pub(crate) branch_ref: Option<String>,
    branch: Option<String>,
    pub(crate) image_digest: Option<String>,
    pub(crate) configuration_sha256: Option<String>,
    #[serde(deserialize_with = "reading::nullable")]
    pub(crate) resource_keys: Vec<String>,
    pub(crate) event_id: Option<String>,
    #[serde(deserialize_with = "reading::nullable")]
    pub(crate) packages: Vec<DeployedPackage>,
}

/// A package in the description of a deployment, with its reachability at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SaidPackage")]
pub(crate) struct DeployedPackage {
    pub(crate) purl: String,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) reachability: Reachability,
}

impl DeploymentDescription {
    /// Parses the description of a deployment; `None` if the text is not such a JSON object.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let object = text.trim_start().starts_with('{').then_some(text)?;
        let said: Self = serde_json::from_str(object).ok()?;
        Some(said.tidied())
    }

    /// Returns the description with truncated names, and without invalid digests, commit ids and
    /// purls.
    fn tidied(mut self) -> Self {
        self.service = first([self.service, self.service_id.take(), self.service_name.take()]);
        self.environment = first([self.environment]);
        self.repository = first([self.repository, self.repository_id.take()]);
        self.branch_ref = first([self.branch_ref, self.branch.take()]);
        self.event_id = first([self.event_id]);
        let commits = [self.commit_sha, self.commit.take(), self.revision.take()];
        let commit = commits.into_iter().flatten().find(|sha| is_commit(sha));
        self.commit_sha = commit.map(|sha| sha.to_lowercase());
        self.image_digest = self.image_digest.as_deref().and_then(image_digest);
        self.configuration_sha256 = self.configuration_sha256.as_deref().and_then(sha256);
        self.resource_keys = self.resource_keys.iter().filter_map(|key| tidy(key)).collect();
        self.resource_keys.sort();
        self.resource_keys.dedup();
        self.resource_keys.truncate(MOST_KEYS);
        self.packages.truncate(MOST_PACKAGES);
        self.packages.retain_mut(|package| match Purl::parse(&package.purl) {
            Ok(purl) => {
                package.purl = purl.to_string();
                true
            }
            Err(_) => false,
        });
        self
    }
}

/// Returns the first of these words that is not empty, truncated.
fn first<const N: usize>(words: [Option<String>; N]) -> Option<String> {
    words.iter().flatten().find_map(|word| tidy(word))
}

fn tidy(word: &str) -> Option<String> {
    let word = bounded(word.trim(), MAX_WORD);
    (!word.is_empty()).then_some(word)
}

/// Returns the 64 hexadecimal digits of a SHA-256 digest, with or without `sha256:`, in lower case;
/// `None` for any other text.
fn sha256(text: &str) -> Option<String> {
    let text = text.strip_prefix("sha256:").unwrap_or(text);
    let good = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    good.then(|| text.to_lowercase())
}

/// Returns the digest `sha256:…` in an image reference: the whole text, or the part after `@`;
/// `None` if there is none.
pub(crate) fn image_digest(text: &str) -> Option<String> {
    let digest = text.rsplit_once('@').map_or(text, |(_, digest)| digest);
    sha256(digest).filter(|_| digest.starts_with("sha256:")).map(|hex| format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_digest_or_commit_is_not_taken_for_one() {
        let said = DeploymentDescription::read(
            r#"{"commit": "main", "image_digest": "latest", "configuration_sha256": "1",
                "environment": " production ", "resource_keys": ["b", "a", "", "b"], "x": 1,
                "packages": [{"purl": "pkg:PYPI/A_b@1"}, {"purl": "what"}], "service": ""}"#,
        );
        let said = said.expect("an object");
        let digests = (said.commit_sha, said.image_digest, said.configuration_sha256);
        assert_eq!(digests, (None, None, None));
        assert_eq!((said.environment.as_deref(), said.service), (Some("production"), None));
        assert_eq!(said.resource_keys, ["a", "b"]);
        assert_eq!(said.packages.len(), 1);
        assert_eq!(said.packages[0].purl, "pkg:pypi/a-b@1");
        for text in ["deployed by hand", "[]"] {
            assert!(DeploymentDescription::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_member_under_two_names_counts_once() {
        let sha = "a".repeat(40);
        let said = DeploymentDescription::read(&format!(
            r#"{{"service_id": "s-1", "service_name": "shop", "service": null, "commit": "{sha}",
                "commit_sha": "main", "revision": "1", "repository": "shop", "repository_id": "r",
                "branch": "main", "branch_ref": " ", "environment": "production",
                "packages": [{{"purl": "pkg:npm/a@1", "reachability": null}}]}}"#,
        ));
        let said = said.expect("a description");
        assert_eq!(said.service.as_deref(), Some("s-1"));
        assert_eq!(said.repository.as_deref(), Some("shop"));
        assert_eq!((said.commit_sha, said.branch_ref.as_deref()), (Some(sha), Some("main")));
        assert_eq!(said.environment.as_deref(), Some("production"));
        assert_eq!(said.packages[0].reachability, Reachability::Unknown);
    }

    #[test]
    fn digests_are_found_at_the_end_of_image_names() {
        let hex = "Ab".repeat(32);
        let digest = Some(format!("sha256:{}", hex.to_lowercase()));
        assert_eq!(image_digest(&format!("sha256:{hex}")), digest);
        assert_eq!(image_digest(&format!("registry/shop@sha256:{hex}")), digest);
        assert_eq!(image_digest(&hex), None);
    }
}
