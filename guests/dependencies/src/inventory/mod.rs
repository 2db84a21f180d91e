//! The inventory: what repositories depend on, and the list of it
//! (operation 16).

pub(crate) mod advisories;
pub(crate) mod alerts;
mod answering;
pub(crate) mod component;
pub(crate) mod list;
pub(crate) mod matches;
mod pages;
