//! Software bills of materials: what a file of CycloneDX or SPDX says of a
//! repository's dependencies, in one shape.
//!
//! A file may be as large as an upload while the area's memory is not, so a
//! [`Sbom`] borrows from the file's bytes, and makes its components when they
//! are asked for.

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

pub(crate) use bill::{Graph, Sbom};
pub(crate) use identity::identify;
pub(crate) use subject::{Subject, stream};

use crate::purl::Purl;
use crate::reading::{self, Mistake, Source};
use crate::vex::State;

/// Members that tell the standards apart.
const CYCLONEDX: &str = "\"bomFormat\"";
const SPDX: &str = "\"spdxVersion\"";

/// Largest file that is read, packed or not.
pub(crate) const MAX_BYTES: usize = 26_214_400;

/// The standard a file follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    CycloneDx,
    Spdx,
}

/// A component is needed at run time, perhaps, or not at all.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    Required,
    Optional,
    Excluded,
}

/// A package that the subject is made of.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// How the file refers to it.
    pub(crate) reference: Option<String>,
    /// Whether [`Self::other_references`] has all others.
    pub(crate) has_all_references: bool,
    /// References of the file's other mentions of the same package.
    pub(crate) other_references: Vec<Option<String>>,
    /// As its ecosystem names it.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) purl: Option<Purl>,
    /// Nothing where the file does not say.
    pub(crate) scope: Option<Scope>,
    pub(crate) direct: bool,
    /// Purls, or the file's references where there is no purl.
    pub(crate) dependencies: Vec<String>,
    /// Vulnerabilities that the file itself reports.
    pub(crate) reported: Vec<Reported>,
    pub(crate) limitations: Vec<String>,
}

/// A vulnerability that a scanner wrote into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) id: String,
    /// Other ids of the same vulnerability.
    pub(crate) aliases: Vec<String>,
    pub(crate) tool: Option<String>,
    /// What the file states about it; `None` if a scanner only reports it.
    pub(crate) state: Option<State>,
    pub(crate) justification: Option<String>,
}

impl<'a> Sbom<'a> {
    /// Reads a file; one that is too large for memory is packed as it was sent.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Mistake> {
        if Packing::of(bytes) != Packing::None {
            let [cyclonedx, spdx] = packed::places(bytes, [CYCLONEDX, SPDX])?;
            return Self::of_format(Source::Packed(bytes), cyclonedx, spdx);
        }
        if bytes.len() > MAX_BYTES {
            let message = format!("{} bytes are too many; {MAX_BYTES} are taken.", bytes.len());
            return Err(Mistake::at("", message));
        }
        if nesting::depth(bytes) > MAX_SBOM_DEPTH {
            let message = format!("Nests deeper than {MAX_SBOM_DEPTH} levels.");
            return Err(Mistake::at("", message));
        }
        let text = reading::text(bytes)?;
        let place = |member: &str| memmem::find(text.as_bytes(), member.as_bytes());
        Self::of_format(Source::Text(text), place(CYCLONEDX), place(SPDX))
    }

    /// Reads a file by the standard whose member comes first.
    fn of_format(
        source: Source<'a>,
        cyclonedx: Option<usize>,
        spdx: Option<usize>,
    ) -> Result<Self, Mistake> {
        match (cyclonedx, spdx) {
            (None, None) => Err(Mistake::at(
                "",
                "Neither `bomFormat` (CycloneDX) nor `spdxVersion` (SPDX) is there.",
            )),
            (Some(cyclonedx), Some(spdx)) if spdx < cyclonedx => spdx::read(source),
            (None, Some(_)) => spdx::read(source),
            (Some(_), _) => cyclonedx::read(source),
        }
    }
}

#[cfg(test)]
mod tests;
