//! Deployments: what runs where, as evidence tells it.

pub(crate) mod document;
pub(crate) mod join;
pub(crate) mod list;
pub(crate) mod places;
pub(crate) mod said;
pub(crate) mod take;
