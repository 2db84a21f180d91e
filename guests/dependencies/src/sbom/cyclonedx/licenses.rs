//! License rules of CycloneDX. All licenses are checked while they are parsed; only properties
//! whose rules differ between versions are stored.

use std::borrow::Cow;

use area_sdk::prelude::*;
use area_sdk::text::truncate_chars;

use super::model::SpecVersion;
use super::properties::FirstNamelessProperty;
use crate::reading::ImportFailure;
use crate::reading::list;

/// Facts about a component's `licenses` that are needed to check them once `specVersion` is known.
#[derive(Clone, Copy, Default)]
pub(super) struct LicenseListSummary {
    count: usize,
    expression: bool,
    /// Index of the first license that has a property without `name`.
    nameless_property: Option<usize>,
}

/// An item of `licenses` in a CycloneDX document: a license, or an SPDX license expression.
#[derive(Deserialize)]
struct LicenseItem<'a> {
    #[serde(borrow, default)]
    license: Option<License<'a>>,
    #[serde(borrow, default)]
    expression: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct License<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(rename = "text", default)]
    _text: Option<Attachment>,
    #[serde(default)]
    properties: FirstNamelessProperty,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "encoding", default)]
    _encoding: Option<AttachmentEncoding>,
}

#[derive(Deserialize)]
enum AttachmentEncoding {
    #[serde(rename = "base64")]
    Base64,
}

impl<'de> Deserialize<'de> for LicenseListSummary {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::fold(deserializer, Self::default(), |licenses, at, item: LicenseItemFlags| {
            if item.nameless_property {
                licenses.nameless_property.get_or_insert(at);
            }
            licenses.expression |= item.expression;
            licenses.count = at + 1;
            Ok(())
        })
    }
}

/// Facts about one item of `licenses` that are needed to check it once `specVersion` is known.
struct LicenseItemFlags {
    expression: bool,
    nameless_property: bool,
}

impl<'de> Deserialize<'de> for LicenseItemFlags {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let item = LicenseItem::deserialize(deserializer)?;
        match (&item.license, &item.expression) {
            (Some(license), None) => {
                license.check().map_err(serde::de::Error::custom)?;
                let nameless_property = license.properties.nameless.is_some();
                Ok(Self { expression: false, nameless_property })
            }
            (None, Some(_)) => Ok(Self { expression: true, nameless_property: false }),
            _ => Err(serde::de::Error::custom("has either `license` or `expression`")),
        }
    }
}

impl License<'_> {
    fn check(&self) -> Result<(), String> {
        match (&self.id, &self.name) {
            (Some(id), None) if is_listed(id) => Ok(()),
            (Some(id), None) => Err(format!(
                "`{}` is not an id of the SPDX license list; other licenses have a `name`",
                truncate_chars(id, 100)
            )),
            (None, Some(_)) => Ok(()),
            _ => Err("a license has either `id` or `name`".to_owned()),
        }
    }
}

/// Whether a license id is in the list of the CycloneDX schema: SPDX licenses and exceptions.
fn is_listed(id: &str) -> bool {
    spdx::license_id(id).is_some() || spdx::exception_id(id).is_some()
}

impl LicenseListSummary {
    /// Checks those rules for `licenses` that depend on the document's `specVersion`.
    pub(super) fn check(self, version: SpecVersion) -> Result<(), ImportFailure> {
        if let Some(at) = self.nameless_property.filter(|_| version >= SpecVersion::V1_6) {
            let pointer = format!("/licenses/{at}/license/properties");
            return Err(ImportFailure::at(pointer, "A property has a `name`."));
        }
        let alone = matches!(version, SpecVersion::V1_5 | SpecVersion::V1_6);
        if alone && self.expression && self.count > 1 {
            let message =
                "In versions 1.5 and 1.6, an expression must stand alone; in 1.7, it need not.";
            return Err(ImportFailure::at("/licenses", message));
        }
        Ok(())
    }
}
