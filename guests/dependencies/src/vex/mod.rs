//! VEX: statements of documents about advisories and components.
//!
//! Statements come from CycloneDX documents, both SBOMs and separate ones. A statement about a
//! component of its own SBOM is stored with the component. All others are stored separately and
//! applied whenever components are matched, so they stay valid for new audits and new advisories.

mod context;
pub(crate) mod document;
mod index;
pub(crate) mod list;
mod matched_statement;
mod statement;
mod versions;

pub(crate) use context::{RelevantStatement, VexStatementIndex};
pub(crate) use matched_statement::MatchedStatements;
pub(crate) use statement::{Statement, Target, VexState};
pub(crate) use versions::{StatedVersion, VersionApplicability, VersionOrRange, VersionStatus};
