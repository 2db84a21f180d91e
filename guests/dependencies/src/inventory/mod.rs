//! The inventory of dependencies and its list (operation 16).

pub(crate) mod advisories;
pub(crate) mod alerts;
pub(crate) mod component;
pub(crate) mod list;
pub(crate) mod matches;
mod pages;
mod row_filter;

use area_sdk::Paging;

/// Paging of lists whose cursors may be long, because the lists are ordered by long texts.
pub(crate) type LongCursorPaging = Paging<50, 100, 8000>;
