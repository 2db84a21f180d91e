//! Parser of advisories in the OSV format, schema 1.0 to 1.7. It refuses only what would change the
//! meaning of an advisory.

pub(crate) mod evaluate;
mod severity;

use area_sdk::prelude::*;

pub(crate) use severity::{Severity, SeverityBand};

use crate::reading::{self, ImportFailure};
use crate::text::without_nul;

/// Maximum length of an advisory's `id`, and of each alias, in characters.
const MAX_ID: usize = 128;
/// Maximum number of `affected` entries in one OSV record.
const MAX_AFFECTED: usize = 1_000;
/// Maximum number of `aliases` in one OSV record.
const MAX_ALIASES: usize = 100;
/// Maximum number of ids in the `upstream`, and in the `related`, of an OSV record.
const MAX_MENTIONS: usize = 1_000;

/// An OSV record: an advisory as written by its database.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Osv {
    pub(crate) id: String,
    pub(crate) modified: Timestamp,
    pub(crate) schema_version: Option<String>,
    pub(crate) published: Option<Timestamp>,
    pub(crate) withdrawn: Option<Timestamp>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) aliases: Vec<String>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) related: Vec<String>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) upstream: Vec<String>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) summary: String,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) details: String,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) severity: Vec<Severity>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) affected: Vec<Affected>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) references: Vec<Reference>,
    #[serde(default)]
    pub(crate) database_specific: DatabaseSpecific,
}

/// `database_specific` of an OSV record, with the one member that most databases have.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct DatabaseSpecific {
    /// Severity as the advisory's database writes it: `CRITICAL`, `HIGH`, `MODERATE` or `LOW`;
    /// other values are ignored.
    #[serde(default)]
    severity: serde_json::Value,
}

/// An item of `references` in an OSV record: a link to further information.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reference {
    /// Type of the linked information: `ADVISORY`, `FIX`, `WEB`, …
    pub(crate) r#type: String,
    pub(crate) url: String,
}

/// An item of `affected` in an OSV record: a package and its affected versions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Affected {
    /// Affected package; null if the item only has ranges of commits.
    #[serde(default)]
    pub(crate) package: Option<OsvPackage>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) ranges: Vec<Range>,
    /// Affected versions of the package, listed explicitly.
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) versions: Vec<String>,
    /// Severity of the vulnerability for this package; used if the advisory itself has none.
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) severity: Vec<Severity>,
}

/// A package in an OSV record: its `ecosystem` and `name`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OsvPackage {
    /// Ecosystem of the package, with the release of a distribution: `npm`, `Debian:12`, …
    pub(crate) ecosystem: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) purl: Option<String>,
}

/// A range of affected versions in an OSV record, as a list of events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Range {
    pub(crate) r#type: RangeType,
    pub(crate) events: Vec<RangeEvent>,
}

/// What the events of an OSV range are: versions in some order, or commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum RangeType {
    /// Commits of a repository. Such a range is not evaluated.
    Git,
    /// Versions in the order of Semantic Versioning 2.0.0.
    Semver,
    /// Versions in the order of the package's ecosystem.
    Ecosystem,
}

/// An event of an OSV range: the beginning or the end of an affected interval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RangeEvent {
    /// This version and later ones are affected; `0` is before all versions.
    Introduced(String),
    /// This version and later ones are not affected.
    Fixed(String),
    /// Versions after this one are not affected.
    LastAffected(String),
    /// The range says nothing about this version and later ones; `*` is after all versions.
    Limit(String),
}

impl Osv {
    /// Parses and checks one OSV record. Removes U+0000 from its texts.
    pub(crate) fn read(text: &str) -> Result<Self, ImportFailure> {
        let osv: Self = reading::json(&without_nul(text))?;
        osv.check()?;
        Ok(osv)
    }

    fn check(&self) -> Result<(), ImportFailure> {
        check_name("/id", &self.id)?;
        for (at, alias) in self.aliases.iter().enumerate() {
            check_name(&format!("/aliases/{at}"), alias)?;
        }
        at_most("/aliases", self.aliases.len(), MAX_ALIASES)?;
        at_most("/upstream", self.upstream.len(), MAX_MENTIONS)?;
        at_most("/related", self.related.len(), MAX_MENTIONS)?;
        at_most("/affected", self.affected.len(), MAX_AFFECTED)?;
        for (at, affected) in self.affected.iter().enumerate() {
            affected.check(&format!("/affected/{at}"))?;
        }
        Ok(())
    }
}

impl Affected {
    fn check(&self, pointer: &str) -> Result<(), ImportFailure> {
        if let Some(package) = &self.package {
            for (member, text) in [("ecosystem", &package.ecosystem), ("name", &package.name)] {
                if text.trim().is_empty() {
                    return Err(ImportFailure::at(
                        format!("{pointer}/package/{member}"),
                        "Is empty.",
                    ));
                }
            }
        }
        for (at, range) in self.ranges.iter().enumerate() {
            let begins = |event: &RangeEvent| matches!(event, RangeEvent::Introduced(_));
            if !range.events.iter().any(begins) {
                let pointer = format!("{pointer}/ranges/{at}/events");
                return Err(ImportFailure::at(pointer, "A range has an event `introduced`."));
            }
        }
        Ok(())
    }
}

fn check_name(pointer: &str, name: &str) -> Result<(), ImportFailure> {
    let good = name.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if good && (1..=MAX_ID).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(ImportFailure::at(pointer, format!("An id has 1 to {MAX_ID} characters, and no space.")))
}

fn at_most(pointer: &str, count: usize, most: usize) -> Result<(), ImportFailure> {
    if count <= most {
        return Ok(());
    }
    Err(ImportFailure::at(pointer, format!("{count} are too many; the maximum is {most}.")))
}

#[cfg(test)]
mod tests;
