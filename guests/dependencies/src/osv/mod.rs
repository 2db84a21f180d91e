//! Advisories in the OSV format, schema 1.0 to 1.7: reading them strictly
//! enough to be sure what they say, and no stricter.

pub(crate) mod evaluate;
mod severity;

use area_sdk::prelude::*;

pub(crate) use severity::{Rating, Severity};

use crate::reading::{self, Mistake};

/// Characters of an id or alias.
const MAX_ID: usize = 128;
/// Packages of one advisory.
const MAX_AFFECTED: usize = 1_000;
/// Aliases of one advisory.
const MAX_ALIASES: usize = 100;
/// Names in `upstream`, and in `related`.
const MAX_MENTIONS: usize = 1_000;

/// An advisory as its source writes it.
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

/// The one member of it that most databases have.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct DatabaseSpecific {
    /// `CRITICAL`, `HIGH`, `MODERATE`, `LOW`; whatever else is passed over.
    #[serde(default)]
    severity: serde_json::Value,
}

/// Where to read more.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reference {
    /// `ADVISORY`, `FIX`, `WEB`, …
    pub(crate) r#type: String,
    pub(crate) url: String,
}

/// A package, and which of its versions are affected.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Affected {
    /// Null where only commits are told.
    #[serde(default)]
    pub(crate) package: Option<OsvPackage>,
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) ranges: Vec<Range>,
    /// Explicit versions.
    #[serde(default, deserialize_with = "reading::nullable")]
    pub(crate) versions: Vec<String>,
    /// Of this package alone, where the advisory has none of its own.
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

/// A range of versions by its events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Range {
    pub(crate) r#type: RangeType,
    pub(crate) events: Vec<RangeEvent>,
}

/// What the versions of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum RangeType {
    /// Commits: not evaluated here.
    Git,
    /// Semantic versions.
    Semver,
    /// Versions of the package's ecosystem.
    Ecosystem,
}

/// Where a range begins or ends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RangeEvent {
    /// Affected from here on; `0` is before every version.
    Introduced(String),
    /// Not affected from here on.
    Fixed(String),
    /// Not affected after this one.
    LastAffected(String),
    /// Nothing is said of this one and later ones; `*` is after every version.
    Limit(String),
}

impl Osv {
    /// Reads one advisory.
    pub(crate) fn read(text: &str) -> Result<Self, Mistake> {
        let osv: Self = reading::json(text)?;
        osv.check()?;
        Ok(osv)
    }

    fn check(&self) -> Result<(), Mistake> {
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
    fn check(&self, pointer: &str) -> Result<(), Mistake> {
        if let Some(package) = &self.package {
            for (member, text) in [("ecosystem", &package.ecosystem), ("name", &package.name)] {
                if text.trim().is_empty() {
                    return Err(Mistake::at(format!("{pointer}/package/{member}"), "Is empty."));
                }
            }
        }
        for (at, range) in self.ranges.iter().enumerate() {
            let begins = |event: &RangeEvent| matches!(event, RangeEvent::Introduced(_));
            if !range.events.iter().any(begins) {
                let pointer = format!("{pointer}/ranges/{at}/events");
                return Err(Mistake::at(pointer, "A range has an event `introduced`."));
            }
        }
        Ok(())
    }
}

fn check_name(pointer: &str, name: &str) -> Result<(), Mistake> {
    let good = name.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if good && (1..=MAX_ID).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(Mistake::at(pointer, format!("An id has 1 to {MAX_ID} characters, and no space.")))
}

fn at_most(pointer: &str, count: usize, most: usize) -> Result<(), Mistake> {
    if count <= most {
        return Ok(());
    }
    Err(Mistake::at(pointer, format!("{count} are too many; {most} are taken.")))
}

#[cfg(test)]
mod tests;
