//! Analyses within an audit: tool, category and, without a category, the
//! artifact stream that the run came in.

use super::AuditInput;
use crate::sarif::Subject;

/// Runs of one key replace each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct AnalysisKey {
    pub(super) tool: String,
    pub(super) category: String,
    /// `None` with a category, which says by itself what belongs together.
    pub(super) stream: Option<String>,
}

impl AnalysisKey {
    /// A key with a category.
    pub(super) fn of_category(tool: String, category: &str) -> Self {
        Self { tool, category: category.to_owned(), stream: None }
    }

    /// The analyses that a run of this file belongs to. Evidence may name one
    /// content in several streams.
    pub(super) fn of_run(subject: &Subject, file: &AuditInput) -> Vec<Self> {
        let Subject { tool, category } = subject;
        if !category.is_empty() {
            return vec![Self::of_category(tool.clone(), category)];
        }
        let in_stream =
            |stream| Self { tool: tool.clone(), category: String::new(), stream: Some(stream) };
        file.streams().into_iter().map(in_stream).collect()
    }
}

impl AuditInput {
    fn streams(&self) -> Vec<String> {
        if self.streams.is_empty() {
            return vec![format!("file:{}", self.filename)];
        }
        self.streams.clone()
    }
}
