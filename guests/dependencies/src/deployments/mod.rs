//! Deployments of services, derived from evidence.

pub(crate) mod document;
pub(crate) mod join;
pub(crate) mod list;
pub(crate) mod places;
pub(crate) mod said;
pub(crate) mod take;
