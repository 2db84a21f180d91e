//! The rules for licences, which change from version to version.

use std::borrow::Cow;

use area_sdk::prelude::*;

use super::model::{Property, SpecVersion, check_properties, each};
use crate::reading::{Mistake, nullable};

/// A licence, or an expression of them.
#[derive(Deserialize)]
pub(super) struct LicenseItem<'a> {
    #[serde(borrow, default)]
    license: Option<Box<License<'a>>>,
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
    #[serde(borrow, default, deserialize_with = "nullable")]
    properties: Vec<Property<'a>>,
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

/// Whether these may stand together as the licences of something.
pub(super) fn check(items: &[LicenseItem<'_>], version: SpecVersion) -> Result<(), Mistake> {
    each("/licenses", items, |item| item.check(version))?;
    let alone = matches!(version, SpecVersion::V1_5 | SpecVersion::V1_6);
    if alone && items.len() > 1 && items.iter().any(|item| item.expression.is_some()) {
        let message = "Up to version 1.6, an expression stands alone; since 1.7, it need not.";
        return Err(Mistake::at("/licenses", message));
    }
    Ok(())
}

impl LicenseItem<'_> {
    fn check(&self, version: SpecVersion) -> Result<(), Mistake> {
        match (&self.license, &self.expression) {
            (Some(license), None) => {
                license.check(version).map_err(|mistake| mistake.within("/license"))
            }
            (None, Some(_)) => Ok(()),
            _ => Err(Mistake::at("", "Has either `license` or `expression`.")),
        }
    }
}

impl License<'_> {
    fn check(&self, version: SpecVersion) -> Result<(), Mistake> {
        check_properties(&self.properties, version)?;
        match (&self.id, &self.name) {
            (Some(id), None) if spdx::license_id(id).is_some() => Ok(()),
            (Some(id), None) => {
                let message = format!(
                    "`{}` is no id of the SPDX licence list; other licences have a `name`.",
                    id.chars().take(100).collect::<String>()
                );
                Err(Mistake::at("/id", message))
            }
            (None, Some(_)) => Ok(()),
            _ => Err(Mistake::at("", "A licence has either `id` or `name`.")),
        }
    }
}
