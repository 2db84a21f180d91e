//! Outermost structure of a JSON document, from which its format is detected.

use std::fmt;

use area_sdk::text::truncate_chars;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::upload::Format;

/// Versions of CycloneDX (`specVersion`) and SPDX (`spdxVersion`) that audits import.
const CYCLONEDX: [&str; 6] = ["1.2", "1.3", "1.4", "1.5", "1.6", "1.7"];
const SPDX: [&str; 2] = ["SPDX-2.2", "SPDX-2.3"];

/// Number of levels of arrays and objects that identify a format: `{"vulns": [{"id": …}]}`.
const LEVELS: usize = 3;

/// Maximum length of a document's version in a message, in characters.
const MOST_SHOWN: usize = 50;

/// Members of a JSON value that identify its format. All other members are skipped, so that a large
/// document needs little memory.
pub(crate) enum JsonShape {
    Object(FormatMembers),
    /// An array; true if it is not empty and all items are OSV advisories.
    Array(bool),
    Text(String),
    Other,
}

#[derive(Default)]
pub(crate) struct FormatMembers {
    bom_format: Option<String>,
    spec_version: Option<String>,
    spdx_version: Option<String>,
    schema: Option<String>,
    id: Option<String>,
    runs: bool,
    /// The document's member `version`; empty if it is not a string.
    version: Option<String>,
    advisory: bool,
    /// Whether the document's member `vulns` is an array of OSV advisories.
    advisories: bool,
}

impl<'de> Deserialize<'de> for JsonShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ShapeVisitor { levels: LEVELS }.deserialize(deserializer)
    }
}

/// Serde visitor that reads this number of levels of arrays and objects of a JSON document. Deeper
/// ones are skipped as [`IgnoredAny`], which does not recurse: an area's stack is small.
#[derive(Clone, Copy)]
struct ShapeVisitor {
    levels: usize,
}

impl ShapeVisitor {
    /// Returns the visitor of the next level of the JSON document; `None` if that level is skipped.
    fn inner(self) -> Option<Self> {
        Some(Self { levels: self.levels.checked_sub(1)? })
    }
}

impl<'de> DeserializeSeed<'de> for ShapeVisitor {
    type Value = JsonShape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonShape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = JsonShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonShape, A::Error> {
        let Some(inner) = self.inner() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(JsonShape::Other);
        };
        let mut members = FormatMembers::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "bomFormat" => members.bom_format = map.next_value_seed(inner)?.text(),
                "specVersion" => members.spec_version = map.next_value_seed(inner)?.text(),
                "version" => {
                    members.version = Some(map.next_value_seed(inner)?.text().unwrap_or_default());
                }
                "spdxVersion" => members.spdx_version = map.next_value_seed(inner)?.text(),
                "$schema" => members.schema = map.next_value_seed(inner)?.text(),
                "id" => members.id = map.next_value_seed(inner)?.text(),
                // `vulns` is the member of osv.dev's response to a query.
                "vulns" => members.advisories = map.next_value_seed(inner)?.is_advisories(),
                other => {
                    members.runs |= other == "runs";
                    members.advisory |= matches!(other, "modified" | "affected" | "schema_version");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(JsonShape::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonShape, A::Error> {
        let Some(inner) = self.inner() else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(JsonShape::Other);
        };
        let (mut some, mut all) = (false, true);
        while let Some(item) = items.next_element_seed(inner)? {
            some = true;
            all &= matches!(item, JsonShape::Object(members) if members.is_advisory());
        }
        Ok(JsonShape::Array(some && all))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonShape, E> {
        Ok(JsonShape::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_unit<E>(self) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }
}

impl JsonShape {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) | Self::Array(_) | Self::Other => None,
        }
    }

    fn is_advisories(&self) -> bool {
        matches!(self, Self::Array(true))
    }

    /// Returns the format of the document; `Unknown` if it is not one of the JSON formats.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Object(members) => members.format(),
            Self::Array(true) => Format::Osv,
            Self::Array(false) | Self::Text(_) | Self::Other => Format::Unknown,
        }
    }

    /// Returns a message if audits do not support the document's version; `None` if the version is
    /// missing, which the audit reports.
    pub(crate) fn unread_version(&self) -> Option<String> {
        let Self::Object(members) = self else { return None };
        let (name, version, read, taken): (_, _, &[&str], _) = match members.format() {
            Format::Sarif => ("SARIF", &members.version, &["2.1.0"], "2.1.0"),
            Format::Cyclonedx => ("CycloneDX", &members.spec_version, &CYCLONEDX, "1.2 to 1.7"),
            Format::Spdx => ("SPDX", &members.spdx_version, &SPDX, "2.2 and 2.3"),
            Format::Osv | Format::CodeOwners | Format::PathList | Format::Unknown => return None,
        };
        let version = version.as_deref().filter(|it| !it.is_empty() && !read.contains(it))?;
        let version = truncate_chars(version, MOST_SHOWN);
        let next = match name {
            _ if version >= read[0] && !version.starts_with("2.1.0-") => "",
            "SARIF" => " Convert it with `sarif-multitool rewrite OLD --output NEW`.",
            "CycloneDX" => " Convert it with `cyclonedx convert --output-version v1_6`.",
            _ => " Create it again as SPDX 2.3.",
        };
        Some(format!("Its version is {name} {version:?}; supported is {name} {taken}.{next}"))
    }
}

impl FormatMembers {
    fn format(&self) -> Format {
        let is =
            |text: &Option<String>, holds: fn(&str) -> bool| text.as_deref().is_some_and(holds);
        if is(&self.bom_format, |text| text == "CycloneDX") {
            Format::Cyclonedx
        } else if is(&self.spdx_version, |text| text.starts_with("SPDX-")) {
            Format::Spdx
        } else if is(&self.schema, |text| text.contains("sarif-external-property-file")) {
            Format::Unknown
        } else if self.runs && self.version.is_some()
            || is(&self.schema, |text| text.to_ascii_lowercase().contains("sarif"))
        {
            Format::Sarif
        } else if self.is_advisory() || self.advisories {
            Format::Osv
        } else {
            Format::Unknown
        }
    }

    fn is_advisory(&self) -> bool {
        self.advisory && self.id.as_ref().is_some_and(|id| !id.is_empty())
    }
}
