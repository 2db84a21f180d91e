//! SBOMs: converts CycloneDX and SPDX files to one form.
//!
//! A file may be as large as an upload, and the area's memory cannot hold that twice. So an
//! [`Sbom`] borrows from the file's bytes and creates components on request.

mod bill;
mod cyclonedx;
mod identity;
mod packed;
mod references;
mod spdx;
mod subject;

use area_sdk::prelude::*;
use artifact_formats::nesting::{self, MAX_SBOM_DEPTH};
use artifact_formats::packing::Packing;
use memchr::memmem;

pub(crate) use bill::{GraphCompleteness, Sbom};
pub(crate) use identity::{add_new, identify, merge_versions};
pub(crate) use subject::{SbomSubject, stream};

use crate::osv::SeverityBand;
use crate::purl::Purl;
use crate::reading::{self, ImportFailure, UnparsedDocument};
use crate::vex::VexState;

/// Member that occurs only in CycloneDX documents, to detect the format.
const CYCLONEDX: &str = "\"bomFormat\"";
/// Member that occurs only in SPDX documents, to detect the format.
const SPDX: &str = "\"spdxVersion\"";

/// Maximum size of an SBOM file as it was sent, in bytes. The unpacked content of a compressed file
/// may be larger.
pub(crate) const MAX_BYTES: usize = 26_214_400;

/// Standard in which an SBOM file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    CycloneDx,
    Spdx,
}

/// Whether a component is needed at run time (`scope` in CycloneDX).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    Required,
    Optional,
    Excluded,
}

/// A package that an SBOM lists, with all its mentions merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Component {
    /// Reference of the package's first mention in the SBOM: `bom-ref` or `SPDXID`.
    pub(crate) reference: Option<String>,
    /// Whether [`Self::other_references`] has all further mentions.
    pub(crate) has_all_references: bool,
    /// References of the further mentions of the package in the SBOM; `None` for a mention without
    /// one.
    pub(crate) other_references: Vec<Option<String>>,
    /// Name of the package in its ecosystem.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) purl: Option<Purl>,
    /// Source package of a distribution's package, if the SBOM names it next to the purl:
    /// `openssl@3.0.11-1` or `openssl`.
    pub(crate) source_package: Option<String>,
    /// Whether advisories for the package name source packages, while the SBOM names none.
    pub(crate) source_unknown: bool,
    /// Scope of the package in the SBOM; `None` if the SBOM does not contain it.
    pub(crate) scope: Option<Scope>,
    pub(crate) direct: bool,
    /// Direct dependencies of the package: purls, or references of components without a purl.
    pub(crate) dependencies: Vec<String>,
    /// Vulnerabilities that the SBOM reports for this component.
    pub(crate) reported: Vec<ReportedVulnerability>,
    pub(crate) limitations: Vec<String>,
}

/// A vulnerability that an SBOM reports for a component (`vulnerabilities` in CycloneDX).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedVulnerability {
    pub(crate) id: String,
    /// Other ids of the reported vulnerability (`references[].id`).
    pub(crate) aliases: Vec<String>,
    pub(crate) tool: Option<String>,
    /// The state in the VEX statement about the vulnerability (`analysis.state`); `None` if a
    /// scanner only reports the vulnerability.
    pub(crate) state: Option<VexState>,
    pub(crate) justification: Option<String>,
    /// Severity in the best rating of the vulnerability (`ratings` in CycloneDX).
    pub(crate) severity: Option<SeverityBand>,
}

impl<'a> Sbom<'a> {
    /// Parses an SBOM file. A file that is too large for memory is given compressed, as it was
    /// sent.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, ImportFailure> {
        if Packing::of(bytes) != Packing::None {
            let [cyclonedx, spdx] = packed::places(bytes, [CYCLONEDX, SPDX])?;
            return Self::of_format(UnparsedDocument::Packed(bytes), cyclonedx, spdx);
        }
        if bytes.len() > MAX_BYTES {
            let message =
                format!("{} bytes are too many; the maximum is {MAX_BYTES}.", bytes.len());
            return Err(ImportFailure::at("", message));
        }
        if nesting::depth(bytes) > MAX_SBOM_DEPTH {
            let message = format!("Nests deeper than {MAX_SBOM_DEPTH} levels.");
            return Err(ImportFailure::at("", message));
        }
        let text = reading::text(bytes)?;
        let place = |member: &str| memmem::find(text.as_bytes(), member.as_bytes());
        Self::of_format(UnparsedDocument::Text(text), place(CYCLONEDX), place(SPDX))
    }

    /// Parses an SBOM by the standard whose member occurs first. `cyclonedx` and `spdx` are the
    /// offsets of these members; `None` if one does not occur.
    fn of_format(
        source: UnparsedDocument<'a>,
        cyclonedx: Option<usize>,
        spdx: Option<usize>,
    ) -> Result<Self, ImportFailure> {
        match (cyclonedx, spdx) {
            (None, None) => Err(ImportFailure::at(
                "",
                "Has neither `bomFormat` (CycloneDX) nor `spdxVersion` (SPDX).",
            )),
            (Some(cyclonedx), Some(spdx)) if spdx < cyclonedx => spdx::read(source),
            (None, Some(_)) => spdx::read(source),
            (Some(_), _) => cyclonedx::read(source),
        }
    }
}

#[cfg(test)]
mod tests;
