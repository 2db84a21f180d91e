//! Architecture context of a repository: the catalog's services that are built from it, and the
//! groups that own them. It determines exposure, component and architecture impact of a finding.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};
use area_shared::catalog::{DataClassification, Repository, Service, UserGroup};

use crate::severity::Severity;
use crate::text::clean;

/// Maximum number of the catalog's services that are read to find those built from a repository.
const MOST_SERVICES: u32 = 1000;

/// Architecture context of a repository: its exposure, with the confidence. Computed from the
/// catalog's services that are built from the repository, and their data classes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RepositoryArchitectureContext {
    /// Component to which findings without a package belong: `service:NAME` or `repository:NAME`.
    component: String,
    /// Exposure of the repository in percent, from 100 to 180; 100 if the catalog has no service
    /// for it.
    pub(crate) exposure_percent: i64,
    /// Confidence in the context, in percent: 25 without a service, 60 with a service, 80 with a
    /// service and its group.
    pub(crate) confidence_percent: i64,
    default_branch: Option<String>,
}

/// Minimum exposure of a repository, in percent, at which the architecture impact of its findings
/// is one band above their severity.
const EXPOSED_PERCENT: i64 = 150;

impl RepositoryArchitectureContext {
    /// Reads the architecture context of a repository from the catalog.
    pub(crate) fn of(scope: &Scope, repository_id: Uuid) -> Result<Self, DocumentError> {
        let repository = scope.documents::<Repository>().find(repository_id)?;
        let services = scope.documents::<Service>().query().limit(MOST_SERVICES).list()?;
        let mut services: Vec<Service> = services.into_iter().map(|kept| kept.value).collect();
        services.retain(|service| service.repository_ids.contains(&repository_id));
        let groups = services.iter().filter_map(|service| service.group_id);
        let groups = scope.documents::<UserGroup>().get_many(groups)?;
        let classes: Vec<DataClassification> =
            groups.iter().map(|group| group.data_classification).collect();
        let repository = repository.map(|kept| kept.value);
        let name =
            repository.as_ref().map_or_else(|| repository_id.to_string(), |kept| kept.name.clone());
        let default_branch = repository.and_then(|kept| kept.default_branch);
        Ok(Self::from(&name, &services, &classes, default_branch))
    }

    fn from(
        repository: &str,
        services: &[Service],
        classes: &[DataClassification],
        default_branch: Option<String>,
    ) -> Self {
        let component = match services {
            [service] => format!("service:{}", service.name),
            _ => format!("repository:{repository}"),
        };
        let confidence_percent = match (services.is_empty(), classes.is_empty()) {
            (true, _) => 25,
            (false, true) => 60,
            (false, false) => 80,
        };
        Self {
            component: clean(&component, 300),
            exposure_percent: exposure(services, classes),
            confidence_percent,
            default_branch,
        }
    }

    /// Returns the component to which a finding belongs: its package URL; without one, the service
    /// or the repository.
    pub(crate) fn component_identity(&self, purl: Option<&str>) -> String {
        purl.unwrap_or(&self.component).to_owned()
    }

    /// Returns the short name of a branch (without `refs/heads/`); without a branch, of the default
    /// branch.
    pub(crate) fn branch(&self, named: Option<&str>) -> String {
        let branch = named.or(self.default_branch.as_deref()).unwrap_or_default();
        branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned()
    }

    /// Returns the architecture impact of a finding with this severity: the severity, or one band
    /// above it if the repository is exposed.
    pub(crate) fn impact(&self, severity: Severity) -> Severity {
        if self.exposure_percent >= EXPOSED_PERCENT { severity.raised() } else { severity }
    }
}

/// Returns the exposure of a repository in percent: 100; plus 20 if a service is built from the
/// repository; plus 30 if one of these services runs in production; plus 10 if one handles
/// confidential data, or 30 for restricted data.
fn exposure(services: &[Service], classes: &[DataClassification]) -> i64 {
    let in_production = |service: &Service| {
        let environment = service.environment.as_deref().unwrap_or_default();
        ["production", "prod", "live"].iter().any(|name| environment.eq_ignore_ascii_case(name))
    };
    let class = classes.iter().map(|class| match class {
        DataClassification::Restricted => 30,
        DataClassification::Confidential => 10,
        DataClassification::Internal | DataClassification::Public => 0,
    });
    100 + if services.is_empty() { 0 } else { 20 }
        + if services.iter().any(in_production) { 30 } else { 0 }
        + class.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(environment: Option<&str>) -> Service {
        Service {
            name: "shop".to_owned(),
            environment: environment.map(ToOwned::to_owned),
            ..Service::default()
        }
    }

    #[test]
    fn exposure_grows_with_what_is_known_to_hang_on_it() {
        let of = |services: &[Service], classes: &[DataClassification]| {
            let found = RepositoryArchitectureContext::from("repo", services, classes, None);
            (found.exposure_percent, found.confidence_percent, found.component.clone())
        };
        assert_eq!(of(&[], &[]), (100, 25, "repository:repo".to_owned()));
        assert_eq!(
            of(&[service(None)], &[DataClassification::Public]),
            (120, 80, "service:shop".to_owned())
        );
        assert_eq!(of(&[service(Some("Production"))], &[]), (150, 60, "service:shop".to_owned()));
        let two = [service(None), service(Some("prod"))];
        assert_eq!(
            of(&two, &[DataClassification::Restricted, DataClassification::Confidential]),
            (180, 80, "repository:repo".to_owned())
        );
    }

    #[test]
    fn what_is_exposed_weighs_one_band_more() {
        let exposed = RepositoryArchitectureContext::from("r", &[service(Some("prod"))], &[], None);
        assert_eq!(exposed.impact(Severity::High), Severity::Critical);
        assert_eq!(exposed.impact(Severity::None), Severity::None);
        let unknown =
            RepositoryArchitectureContext::from("r", &[], &[], Some("refs/heads/main".to_owned()));
        assert_eq!(unknown.impact(Severity::High), Severity::High);
        assert_eq!(unknown.branch(None), "main");
        assert_eq!(unknown.branch(Some("refs/heads/next")), "next");
        assert_eq!(unknown.branch(Some("refs/pull/1/merge")), "refs/pull/1/merge");
    }
}
