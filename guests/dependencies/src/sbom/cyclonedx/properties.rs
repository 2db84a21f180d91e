//! Properties of a CycloneDX document and its components.

use std::borrow::Cow;

use area_sdk::prelude::*;

use super::model::SpecVersion;
use crate::reading::ImportFailure;
use crate::reading::list;

/// Prefix of the names of properties in which Trivy describes a component's source package.
const TRIVY_SOURCE: &str = "aquasecurity:trivy:Src";

/// `properties` in a CycloneDX document. Only the index of the first one without `name` is stored.
#[derive(Clone, Copy, Default)]
pub(super) struct FirstNamelessProperty {
    pub(super) nameless: Option<usize>,
}

impl FirstNamelessProperty {
    pub(super) fn check(self, version: SpecVersion) -> Result<(), ImportFailure> {
        match self.nameless.filter(|_| version >= SpecVersion::V1_6) {
            Some(at) => {
                Err(ImportFailure::at(format!("/properties/{at}"), "A property has a `name`."))
            }
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for FirstNamelessProperty {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Property<'a> {
            #[serde(borrow, default)]
            name: Option<Cow<'a, str>>,
        }
        list::fold(deserializer, Self::default(), |properties, at, property: Property<'de>| {
            if property.name.is_none() {
                properties.nameless.get_or_insert(at);
            }
            Ok(())
        })
    }
}

/// `properties` of a component. Only those in which Trivy describes a source package are stored.
#[derive(Default)]
pub(super) struct ComponentProperties {
    pub(super) names: FirstNamelessProperty,
    source: Option<Box<TrivySourceProperties>>,
}

/// Values of Trivy's properties `SrcName`, `SrcEpoch`, `SrcVersion` and `SrcRelease`; empty if they
/// are missing.
#[derive(Default)]
struct TrivySourceProperties {
    name: String,
    epoch: String,
    version: String,
    release: String,
}

impl ComponentProperties {
    /// Returns the source package that Trivy names: `openssl@3.0.11-1`, or `openssl` without a
    /// version.
    pub(super) fn source_package(&self) -> Option<String> {
        self.source.as_ref()?.package()
    }
}

impl TrivySourceProperties {
    fn set(&mut self, name: &str, value: &str) {
        let member = match name {
            "Name" => &mut self.name,
            "Epoch" => &mut self.epoch,
            "Version" => &mut self.version,
            "Release" => &mut self.release,
            _ => return,
        };
        value.clone_into(member);
    }

    fn package(&self) -> Option<String> {
        let Self { name, epoch, version, release } = self;
        let epoch = if matches!(epoch.as_str(), "" | "0") { "" } else { &format!("{epoch}:") };
        let release = if release.is_empty() { "" } else { &format!("-{release}") };
        match (name.as_str(), version.as_str()) {
            ("", _) => None,
            (name, "") => Some(name.to_owned()),
            (name, version) => Some(format!("{name}@{epoch}{version}{release}")),
        }
    }
}

impl<'de> Deserialize<'de> for ComponentProperties {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Property<'a> {
            #[serde(borrow, default)]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            value: Option<PropertyValue<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum PropertyValue<'a> {
            Text(#[serde(borrow)] Cow<'a, str>),
            Other(serde::de::IgnoredAny),
        }
        list::fold(deserializer, Self::default(), |properties, at, property: Property<'de>| {
            let Some(name) = property.name else {
                properties.names.nameless.get_or_insert(at);
                return Ok(());
            };
            if let Some(part) = name.strip_prefix(TRIVY_SOURCE)
                && let Some(PropertyValue::Text(value)) = property.value
            {
                properties.source.get_or_insert_default().set(part, &value);
            }
            Ok(())
        })
    }
}
