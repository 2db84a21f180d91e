//! Software bills of materials: what a file of CycloneDX or SPDX says of a
//! repository's dependencies, in one shape.

mod cyclonedx;
mod identity;
mod spdx;

use std::collections::{BTreeMap, BTreeSet};

use area_sdk::prelude::*;

pub(crate) use identity::identify;

use crate::purl::Purl;
use crate::reading::{self, Mistake};

/// Largest file that is read.
pub(crate) const MAX_BYTES: usize = 26_214_400;
/// How deep its arrays and objects may nest.
const MAX_DEPTH: usize = 40;
/// How many dependencies of one component are kept.
const MAX_DEPENDENCIES: usize = 1_000;

/// The standard a file follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    CycloneDx,
    Spdx,
}

/// A bill of materials.
#[derive(Clone, Debug)]
pub(crate) struct Sbom {
    pub(crate) format: Format,
    pub(crate) spec_version: String,
    /// What it is the bill of; nothing where the file does not say.
    pub(crate) subject: Option<Subject>,
    /// What made it: `syft 1.2.3`.
    pub(crate) tool: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) graph: Graph,
    /// Each package once.
    pub(crate) components: Vec<Component>,
    /// What was passed over.
    pub(crate) warnings: Vec<String>,
}

/// What a bill of materials is the bill of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The same for every version of it.
    pub(crate) key: String,
    /// `sha256:…` of an image or file.
    pub(crate) digest: Option<String>,
}

/// What a file tells of who depends on whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Graph {
    /// Nothing.
    Absent,
    /// Something, but not what the subject itself depends on.
    Rootless,
    /// What the subject depends on, too.
    Rooted,
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
    /// Why the file itself says that the component is not affected.
    pub(crate) dismissed: Option<String>,
}

impl Sbom {
    /// Reads a file.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Mistake> {
        if bytes.len() > MAX_BYTES {
            let message = format!("{} bytes are too many; {MAX_BYTES} are taken.", bytes.len());
            return Err(Mistake::at("", message));
        }
        if reading::depth(bytes) > MAX_DEPTH {
            let message = format!("Nests deeper than {MAX_DEPTH} levels.");
            return Err(Mistake::at("", message));
        }
        let kind: Kind<'_> = reading::json(bytes)?;
        match kind {
            Kind { bom_format: Some(_), .. } => cyclonedx::read(bytes),
            Kind { spdx_version: Some(_), .. } => spdx::read(bytes),
            _ => Err(Mistake::at(
                "",
                "Neither `bomFormat` (CycloneDX) nor `spdxVersion` (SPDX) is there.",
            )),
        }
    }
}

/// What tells one standard from the other.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "bomFormat", default)]
    bom_format: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, rename = "spdxVersion", default)]
    spdx_version: Option<&'a serde_json::value::RawValue>,
}

/// A component as it stands in the file, before equal ones are brought together.
struct Entry<'a> {
    /// Nothing where the file has no reference.
    reference: Option<&'a str>,
    component: Component,
}

/// Who depends on whom, by reference.
type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Brings together what is one package, and says who depends on whom.
fn collapse(entries: Vec<Entry<'_>>, edges: &Edges<'_>, direct: &BTreeSet<&str>) -> Vec<Component> {
    let names: BTreeMap<&str, String> = entries
        .iter()
        .filter_map(|entry| Some((entry.reference?, entry.component.purl.as_ref()?.to_string())))
        .collect();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut components: Vec<Component> = Vec::with_capacity(entries.len());
    for Entry { reference, mut component } in entries {
        let depends_on = reference.and_then(|reference| edges.get(reference));
        let dependencies = depends_on.into_iter().flatten();
        let named = dependencies.map(|on| names.get(on).cloned().unwrap_or_else(|| (*on).into()));
        component.dependencies = named.collect();
        component.direct = reference.is_some_and(|reference| direct.contains(reference));
        let place = places.entry(identity::of(&component)).or_insert(components.len());
        match components.get_mut(*place) {
            Some(first) => first.merge(component),
            None => components.push(component),
        }
    }
    components.iter_mut().for_each(Component::bound);
    components
}

impl Component {
    /// Takes in another mention of the same package.
    pub(crate) fn merge(&mut self, other: Self) {
        self.direct |= other.direct;
        self.scope = match (self.scope, other.scope) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.dependencies.extend(other.dependencies);
        for reported in other.reported {
            if !self.reported.contains(&reported) {
                self.reported.push(reported);
            }
        }
        for limitation in other.limitations {
            if !self.limitations.contains(&limitation) {
                self.limitations.push(limitation);
            }
        }
    }

    fn bound(&mut self) {
        self.dependencies.sort();
        self.dependencies.dedup();
        if self.dependencies.len() > MAX_DEPENDENCIES {
            let limitation = format!(
                "Of {} dependencies the first {MAX_DEPENDENCIES} are listed.",
                self.dependencies.len()
            );
            self.limitations.push(limitation);
            self.dependencies.truncate(MAX_DEPENDENCIES);
        }
    }
}

#[cfg(test)]
mod tests;
