//! Keys of analyses within an audit: tool and category; for a run without a category, tool and
//! artifact stream.

use std::fmt;

use area_sdk::prelude::*;

use super::AuditInput;
use crate::sarif::ToolAndCategory;

/// Key of an analysis within an audit. A later run with the same key replaces the findings of an
/// earlier one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub(super) struct AnalysisKey {
    pub(super) tool: String,
    pub(super) category: String,
    /// Artifact stream of the run's file; `None` if the run has a category, because tool and
    /// category then identify the analysis.
    #[serde(default)]
    pub(super) stream: Option<String>,
}

impl AnalysisKey {
    /// Returns the key of an analysis with a category.
    pub(super) fn of_category(tool: String, category: &str) -> Self {
        Self { tool, category: category.to_owned(), stream: None }
    }

    /// Returns the keys of the analyses to which a run in this file belongs: several if evidence
    /// assigns the file to several streams.
    pub(super) fn of_run(subject: &ToolAndCategory, file: &AuditInput) -> Vec<Self> {
        let ToolAndCategory { tool, category } = subject;
        if !category.is_empty() {
            return vec![Self::of_category(tool.clone(), category)];
        }
        let in_stream =
            |stream| Self { tool: tool.clone(), category: String::new(), stream: Some(stream) };
        file.streams().into_iter().map(in_stream).collect()
    }
}

/// Names an analysis in warnings: `Semgrep of category backend`.
impl fmt::Display for AnalysisKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, category, stream } = self;
        match stream {
            Some(stream) => write!(f, "{tool} without category in {stream}"),
            None if category.is_empty() => write!(f, "{tool} without category"),
            None => write!(f, "{tool} of category {category}"),
        }
    }
}

impl AuditInput {
    pub(super) fn streams(&self) -> Vec<String> {
        if self.streams.is_empty() {
            return vec![format!("file:{}", self.filename)];
        }
        self.streams.clone()
    }
}
