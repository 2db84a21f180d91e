//! Parser of advisories in the OSV format, schema 1.0 to 1.7. It is strict only where the meaning
//! depends on it.

pub(crate) mod evaluate;
mod severity;

use area_sdk::prelude::*;

pub(crate) use severity::{Rating, Severity};

use crate::reading::{self, ImportFailure};

/// Maximum length of an id or alias, in characters.
const MAX_ID: usize = 128;
/// Maximum number of packages of one advisory.
const MAX_AFFECTED: usize = 1_000;
/// Maximum number of aliases of one advisory.
const MAX_ALIASES: usize = 100;
/// Maximum number of names in `upstream`, and in `related`.
const MAX_MENTIONS: usize = 1_000;

/// An advisory as written by its source.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Osv {
    pub(crate) id: String,
    pub(crate) modified: Timestamp,
    #[serde(default)]
    pub(crate) schema_version: Option<String>,
    #[serde(default)]
    pub(crate) published: Option<Timestamp>,
    #[serde(default)]
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

/// The one member that most databases have.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct DatabaseSpecific {
    /// `CRITICAL`, `HIGH`, `MODERATE` or `LOW`; other values are ignored.
    #[serde(default)]
    severity: serde_json::Value,
}

/// A link to further information.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reference {
    /// `ADVISORY`, `FIX`, `WEB`, …
    pub(crate) r#type: String,
    pub(crate) url: String,
}

/// A package and its affected versions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Affected {
    /// Null if the entry has only commits.
    #[serde(default)]
    pub(crate) package: Option<OsvPackage>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) ranges: Vec<Range>,
    /// Explicit versions.
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) versions: Vec<String>,
    /// Severity for this package, if the advisory has none of its own.
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) severity: Vec<Severity>,
}

/// A package by ecosystem and name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OsvPackage {
    /// `npm`, `Debian:12`, …
    pub(crate) ecosystem: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) purl: Option<String>,
}

/// A version range as a list of events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Range {
    pub(crate) r#type: RangeType,
    pub(crate) events: Vec<RangeEvent>,
}

/// Kind of a range's versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum RangeType {
    /// Commits; not evaluated.
    Git,
    /// Semantic versions.
    Semver,
    /// Versions in the package's ecosystem.
    Ecosystem,
}

/// Start or end of an affected interval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RangeEvent {
    /// Affected from this version on; `0` is before all versions.
    Introduced(String),
    /// Not affected from this version on.
    Fixed(String),
    /// Not affected after this version.
    LastAffected(String),
    /// Unknown from this version on; `*` is after all versions.
    Limit(String),
}

impl Osv {
    /// Parses one advisory.
    pub(crate) fn read(text: &str) -> Result<Self, ImportFailure> {
        let osv: Self = reading::json(text)?;
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
