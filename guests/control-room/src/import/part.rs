//! Parts of an import: one for each analysis that has a run in a file of the audit.

use area_sdk::prelude::*;

use super::key::AnalysisKey;
use super::{AuditInput, FindingImportJob};

/// Maximum number of skipped files that one warning names; further ones are counted.
const MOST_NAMED: usize = 3;

/// An analysis that has a run in this audit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PresentAnalysis {
    pub(super) analysis_id: String,
    /// Id of the group to which the analysis belongs: all streams of a tool without a category, on
    /// one branch.
    #[serde(default)]
    pub(super) group_id: String,
    #[serde(flatten)]
    pub(super) key: AnalysisKey,
    /// Number of the analysis's run in this audit, from 1; 0 before the run was started.
    pub(super) run: i64,
    /// Whether a run of the analysis was successful. Only then can its findings be gone.
    pub(super) successful: bool,
    /// File with the successful run of the analysis; `None` for evidence records.
    #[serde(default)]
    pub(super) file: Option<UploadReference>,
    /// Whether another run of the analysis in `file` failed, or any run in that file was refused.
    /// The file then does not cover the whole analysis.
    #[serde(default)]
    pub(super) partial: bool,
    /// Numbers of the stored coverages of the analysis's successful runs.
    #[serde(default)]
    pub(super) coverages: Vec<u32>,
    /// Only older files that became ready after this time are reported as skipped; earlier audits
    /// have reported the others.
    #[serde(default)]
    pub(super) reported_until: Option<Timestamp>,
    #[serde(default)]
    pub(super) set_aside: SupersededFiles,
    /// Number of open findings that only the analysis's file of an earlier audit still reports,
    /// although a newer run in another file covers them.
    #[serde(default)]
    pub(super) kept_open: u64,
}

/// A file that an audit imports, as warnings name it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct UploadReference {
    pub(super) upload_id: Uuid,
    pub(super) filename: String,
    pub(super) ready_at: Timestamp,
}

impl From<&AuditInput> for UploadReference {
    fn from(input: &AuditInput) -> Self {
        let (upload_id, ready_at) = (input.upload_id, input.ready_at);
        Self { upload_id, filename: input.filename.clone(), ready_at }
    }
}

impl std::fmt::Display for UploadReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (upload {})", self.filename, self.upload_id)
    }
}

/// Files that were skipped because a newer file has a run of the same analysis.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SupersededFiles {
    files: Vec<UploadReference>,
    more: u64,
}

impl PresentAnalysis {
    /// Stores that a run of the analysis in this file was successful, and the number of the run's
    /// coverage.
    pub(super) fn note_success(&mut self, file: &AuditInput, coverage: u32) {
        self.successful = true;
        self.file = Some(file.into());
        self.coverages.push(coverage);
    }

    /// Returns the time at which the file became ready that covers the whole analysis in this
    /// audit; `None` if no file does.
    pub(super) fn whole_since(&self, audit_started_at: Timestamp) -> Option<Timestamp> {
        let whole = self.successful && !self.partial;
        let ready_at = || self.file.as_ref().map_or(audit_started_at, |file| file.ready_at);
        whole.then(ready_at)
    }

    /// Whether the successful run of the analysis is in the file with this upload id.
    pub(super) fn is_of(&self, upload_id: Uuid) -> bool {
        self.file.as_ref().is_some_and(|file| file.upload_id == upload_id)
    }

    /// Records an older file of the analysis as skipped, unless an earlier audit reported that.
    pub(super) fn set_aside(&mut self, input: &AuditInput) {
        let reported = self.reported_until.is_some_and(|until| input.ready_at <= until);
        let SupersededFiles { files, more } = &mut self.set_aside;
        if reported || files.last().is_some_and(|last| last.upload_id == input.upload_id) {
            return;
        }
        if files.len() < MOST_NAMED {
            files.push(input.into());
        } else {
            *more += 1;
        }
    }

    /// Returns a warning that names the skipped files of the analysis, the newer file and a hint;
    /// `None` if no file was skipped.
    pub(super) fn set_aside_warning(&self) -> Option<String> {
        let SupersededFiles { files, more } = &self.set_aside;
        let newer = self.file.as_ref().filter(|_| !files.is_empty())?;
        let names: Vec<String> = files.iter().map(ToString::to_string).collect();
        let names = match more {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        };
        let hint = match self.key.stream {
            Some(_) => {
                "Give files of different analyses different names, or each run a category \
                 (automationDetails.id)."
            }
            None => "Give each analysis a different category (automationDetails.id).",
        };
        let key = &self.key;
        Some(format!("Set aside, because {newer} is a newer run of {key}: {names}. {hint}"))
    }

    /// Returns a warning about findings that an old file of the analysis keeps open; `None` if
    /// there are none.
    pub(super) fn kept_open_warning(&self) -> Option<String> {
        let (file, tool) = (self.file.as_ref()?, &self.key.tool);
        let (findings, them) = match self.kept_open {
            0 => return None,
            1 => ("1 finding stays".to_owned(), "it"),
            count => (format!("{count} findings stay"), "them"),
        };
        Some(format!(
            "{findings} open because of the old file {file}, although a newer run of {tool} in \
             another file covers the same paths without {them}: a file under a new name does not \
             close findings of the old one. Send each scan under the same filename every time, or \
             with a category (automationDetails.id)."
        ))
    }
}

impl FindingImportJob {
    /// Returns the index of an analysis in the job's `parts`; `None` if the analysis has no run in
    /// this audit yet.
    pub(super) fn part_of(&self, key: &AnalysisKey) -> Option<usize> {
        self.parts.iter().position(|part| part.key == *key)
    }
}
