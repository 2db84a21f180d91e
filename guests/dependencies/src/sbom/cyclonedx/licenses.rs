//! The rules for licences, which change from version to version. Licences are
//! judged while they are read; only what the version decides is kept.

use std::borrow::Cow;

use area_sdk::prelude::*;

use super::model::{Properties, SpecVersion};
use crate::reading::Mistake;
use crate::reading::list;

/// The licences of something.
#[derive(Clone, Copy, Default)]
pub(super) struct Licenses {
    count: usize,
    expression: bool,
    /// The first that has a property without a name.
    nameless_property: Option<usize>,
}

/// A licence, or an expression of them.
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
    properties: Properties,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "encoding", default)]
    _encoding: Option<Encoding>,
}

#[derive(Deserialize)]
enum Encoding {
    #[serde(rename = "base64")]
    Base64,
}

impl<'de> Deserialize<'de> for Licenses {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list::fold(deserializer, Self::default(), |licenses, at, item: Judged| {
            if item.nameless_property {
                licenses.nameless_property.get_or_insert(at);
            }
            licenses.expression |= item.expression;
            licenses.count = at + 1;
            Ok(())
        })
    }
}

/// What is kept of one licence.
struct Judged {
    expression: bool,
    nameless_property: bool,
}

impl<'de> Deserialize<'de> for Judged {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let item = LicenseItem::deserialize(deserializer)?;
        match (&item.license, &item.expression) {
            (Some(license), None) => {
                license.check().map_err(serde::de::Error::custom)?;
                let nameless_property = license.properties.nameless().is_some();
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
                "`{}` is no id of the SPDX licence list; other licences have a `name`",
                id.chars().take(100).collect::<String>()
            )),
            (None, Some(_)) => Ok(()),
            _ => Err("a licence has either `id` or `name`".to_owned()),
        }
    }
}

/// CycloneDX's list of ids is that of SPDX: its licences and its exceptions.
fn is_listed(id: &str) -> bool {
    spdx::license_id(id).is_some() || spdx::exception_id(id).is_some()
}

impl Licenses {
    /// Whether these may stand together, in this version.
    pub(super) fn check(self, version: SpecVersion) -> Result<(), Mistake> {
        if let Some(at) = self.nameless_property.filter(|_| version >= SpecVersion::V1_6) {
            let pointer = format!("/licenses/{at}/license/properties");
            return Err(Mistake::at(pointer, "A property has a `name`."));
        }
        let alone = matches!(version, SpecVersion::V1_5 | SpecVersion::V1_6);
        if alone && self.expression && self.count > 1 {
            let message = "Up to version 1.6, an expression stands alone; since 1.7, it need not.";
            return Err(Mistake::at("/licenses", message));
        }
        Ok(())
    }
}
