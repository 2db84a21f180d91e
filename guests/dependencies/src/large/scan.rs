//! Reads the advisory entries of a package page by page, in several steps. The vulnerabilities
//! found are stored in parts until the matches are written.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Scope};

use super::revision::{self, ReassessmentTarget};
use crate::budget::StepBudget;
use crate::documents::put;
use crate::inventory::component::StoredComponent;
use crate::matching::{AdvisoryEntryPages, ComponentAssessment, Vulnerability};

/// Vulnerabilities that one step of an [`AdvisoryScan`] found, stored until the assessment ends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScanPart")]
pub(crate) struct VulnerabilityChunk {
    vulnerabilities: Vec<Vulnerability>,
}

document!(VulnerabilityChunk, "scan_parts");

/// Number of found vulnerabilities after which a scan stores them as a [`VulnerabilityChunk`].
const PART: usize = 500;

/// The comparison of all advisory entries of a package with one version, in several steps.
///
/// It is outdated if the component's or the package's revision has changed since it began.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AdvisoryScan {
    /// Prefix of the document ids of the scan's [`VulnerabilityChunk`]s.
    owner: String,
    /// Key of everything that affects the result of the scan: package, version, release and
    /// spelling.
    subject: String,
    /// Revision of the component at the beginning of the scan. `None`, in a scan that an earlier
    /// version of this area began, fits no component: the scan begins again.
    component_revision: Option<u64>,
    /// Sum of the component's and the package's revisions at the beginning of the scan.
    revision: u64,
    parts: usize,
    /// Cursor of the next page of advisory entries; `None` before the first page.
    cursor: Option<String>,
    pub(super) is_complete: bool,
    /// Results of the scan, without the vulnerabilities in stored [`VulnerabilityChunk`]s.
    findings: ComponentAssessment,
}

impl AdvisoryScan {
    /// Returns the scan of advisories for a component: the given one if it is of the same package
    /// and version and not outdated; otherwise a new one.
    pub(super) fn of<'a>(
        ctx: &JobCtx,
        owner: &str,
        scan: &'a mut Option<Self>,
        component: &StoredComponent,
    ) -> Result<&'a mut Self, DocumentError> {
        let subject = subject(component);
        let component_revision = Some(component.revision.unwrap_or_default());
        let revision = revision::current(ctx, component)?;
        let fits = scan.as_ref().is_some_and(|scan| {
            let began_with = (scan.component_revision, scan.revision);
            let is_current = began_with == (component_revision, revision);
            scan.subject == subject && (is_current || !scan.is_complete)
        });
        if !fits && let Some(scan) = scan.take() {
            scan.discard(ctx)?;
        }
        Ok(scan.get_or_insert_with(|| Self {
            owner: owner.to_owned(),
            subject,
            component_revision,
            revision,
            parts: 0,
            cursor: None,
            is_complete: false,
            findings: ComponentAssessment::default(),
        }))
    }

    /// Whether neither the component nor its package changed since the scan began; see
    /// [`revision::hold`].
    pub(super) fn hold(
        &self,
        ctx: &JobCtx,
        component: &StoredComponent,
    ) -> Result<bool, DocumentError> {
        let own = component.revision.unwrap_or_default();
        if self.component_revision != Some(own) {
            return Ok(false);
        }
        let Some(key) = component.package_key.clone() else { return Ok(true) };
        let Some(of_package) = self.revision.checked_sub(own) else { return Ok(false) };
        revision::hold(ctx, &ReassessmentTarget::Package(key), of_package)
    }

    /// Compares further advisory entries with the component, as far as the budget permits. Returns
    /// whether all entries were compared.
    pub(super) fn read_some(
        &mut self,
        scope: &Scope,
        component: &StoredComponent,
        budget: &mut StepBudget,
    ) -> Result<bool, DocumentError> {
        let mut pages = AdvisoryEntryPages::of(scope, component, self.cursor.clone());
        while !self.is_complete && budget.has(AdvisoryEntryPages::MOST) {
            self.cursor = pages.look_at(component, &mut self.findings, budget)?;
            self.is_complete = self.cursor.is_none();
            if self.findings.vulnerabilities.len() >= PART {
                self.keep_part(scope, budget)?;
            }
        }
        self.keep_part(scope, budget)?;
        Ok(self.is_complete)
    }

    fn keep_part(&mut self, scope: &Scope, budget: &mut StepBudget) -> Result<(), DocumentError> {
        if self.findings.vulnerabilities.is_empty() {
            return Ok(());
        }
        let part = VulnerabilityChunk {
            vulnerabilities: std::mem::take(&mut self.findings.vulnerabilities),
        };
        let id = self.part_id(self.parts);
        self.parts += 1;
        budget.spend(2);
        // A failed attempt may have stored this part.
        let known = scope.documents::<VulnerabilityChunk>().find(&id)?;
        put(scope, &id, known, part)
    }

    fn part_id(&self, number: usize) -> String {
        format!("{}/{number}", self.owner)
    }

    fn parts(&self, scope: &Scope) -> Result<Vec<Stored<VulnerabilityChunk>>, DocumentError> {
        let ids = (0..self.parts).map(|number| self.part_id(number));
        scope.documents::<VulnerabilityChunk>().get_many(ids)
    }

    /// Returns the whole result of the scan for a component, and the number of documents read.
    pub(super) fn load(
        &self,
        scope: &Scope,
        component: &StoredComponent,
    ) -> Result<(ComponentAssessment, usize), DocumentError> {
        let mut found = self.findings.clone();
        for part in self.parts(scope)? {
            found.vulnerabilities.extend(part.value.vulnerabilities);
        }
        for vulnerability in &mut found.vulnerabilities {
            vulnerability.entry.scanner_run_id = component.scanner_run_id;
        }
        Ok((found, self.parts))
    }

    /// Deletes the vulnerabilities that the steps of this advisory scan stored
    /// ([`VulnerabilityChunk`] documents).
    pub(crate) fn discard(self, scope: &Scope) -> Result<(), DocumentError> {
        let parts = self.parts(scope)?;
        scope.documents::<VulnerabilityChunk>().delete_all(&parts)
    }
}

/// Returns the key of everything that affects the result of a scan: package, version and release;
/// for Go modules also the spelling in the SBOM.
fn subject(component: &StoredComponent) -> String {
    let package = component.package();
    let is_go = package.as_ref().is_some_and(|package| package.ecosystem == "Go");
    let spelling = is_go.then_some((&component.name, component.case_known));
    format!("{package:?} {spelling:?}")
}
