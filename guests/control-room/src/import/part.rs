//! The parts of an import: one for each analysis that a file of the audit has a
//! run of.

use area_sdk::prelude::*;

use super::key::AnalysisKey;
use super::{AuditInput, ImportFindings};

/// Files set aside that a part names; more are counted.
const MOST_NAMED: usize = 3;

/// An analysis in this audit, and which run of it this is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) analysis_id: String,
    /// What all streams of a tool without a category share, within the branch.
    #[serde(default)]
    pub(super) group_id: String,
    pub(super) tool: String,
    pub(super) category: String,
    #[serde(default)]
    pub(super) stream: Option<String>,
    pub(super) run: i64,
    /// Did a run of it end well? Only then is anything gone.
    pub(super) successful: bool,
    /// The file of the successful run.
    #[serde(default)]
    pub(super) file: Option<FileName>,
    /// Another run in that file failed or was refused, so that the file does
    /// not speak for the whole analysis.
    #[serde(default)]
    pub(super) partial: bool,
    /// Coverages of its successful runs, by number.
    #[serde(default)]
    pub(super) coverages: Vec<u32>,
    /// Older files are reported as set aside if they came after this.
    #[serde(default)]
    pub(super) reported_until: Option<Timestamp>,
    #[serde(default)]
    pub(super) set_aside: SetAside,
}

/// A file, as warnings name it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct FileName {
    pub(super) upload_id: Uuid,
    pub(super) filename: String,
    pub(super) ready_at: Timestamp,
}

impl From<&AuditInput> for FileName {
    fn from(input: &AuditInput) -> Self {
        let (upload_id, ready_at) = (input.upload_id, input.ready_at);
        Self { upload_id, filename: input.filename.clone(), ready_at }
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (upload {})", self.filename, self.upload_id)
    }
}

/// Files that a newer one of the same analysis set aside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SetAside {
    files: Vec<FileName>,
    more: u64,
}

impl Part {
    pub(super) fn new(
        key: &AnalysisKey,
        analysis_id: String,
        group_id: String,
        run: i64,
        reported_until: Option<Timestamp>,
    ) -> Self {
        Self {
            analysis_id,
            group_id,
            tool: key.tool.clone(),
            category: key.category.clone(),
            stream: key.stream.clone(),
            run,
            successful: false,
            file: None,
            partial: false,
            coverages: Vec::new(),
            reported_until,
            set_aside: SetAside::default(),
        }
    }

    pub(super) fn key(&self) -> AnalysisKey {
        let Self { tool, category, stream, .. } = self;
        AnalysisKey { tool: tool.clone(), category: category.clone(), stream: stream.clone() }
    }

    /// Notes a run that ended well, and the number of its coverage.
    pub(super) fn note_success(&mut self, file: &AuditInput, coverage: u32) {
        self.successful = true;
        self.file = Some(file.into());
        self.coverages.push(coverage);
    }

    /// When the file became ready that speaks for the whole analysis; `None`
    /// if none does.
    pub(super) fn whole_since(&self, audit_started_at: Timestamp) -> Option<Timestamp> {
        let whole = self.successful && !self.partial;
        let ready_at = || self.file.as_ref().map_or(audit_started_at, |file| file.ready_at);
        whole.then(ready_at)
    }

    /// Whether this file's run is the one that counts.
    pub(super) fn is_of(&self, upload_id: Uuid) -> bool {
        self.file.as_ref().is_some_and(|file| file.upload_id == upload_id)
    }

    /// Notes an older file of the analysis that is not read.
    pub(super) fn set_aside(&mut self, input: &AuditInput) {
        let reported = self.reported_until.is_some_and(|until| input.ready_at <= until);
        let SetAside { files, more } = &mut self.set_aside;
        if reported || files.last().is_some_and(|last| last.upload_id == input.upload_id) {
            return;
        }
        if files.len() < MOST_NAMED {
            files.push(input.into());
        } else {
            *more += 1;
        }
    }

    /// Which files were set aside, by which, and why.
    pub(super) fn set_aside_warning(&self) -> Option<String> {
        let SetAside { files, more } = &self.set_aside;
        let newer = self.file.as_ref().filter(|_| !files.is_empty())?;
        let names: Vec<String> = files.iter().map(ToString::to_string).collect();
        let names = match more {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        };
        let hint = match self.stream {
            Some(_) => {
                "Give files of different analyses different names, or each run a category \
                 (automationDetails.id)."
            }
            None => "Give each analysis a category (automationDetails.id) of its own.",
        };
        let analysis = describe(&self.tool, &self.category, self.stream.as_deref());
        Some(format!("Set aside, because {newer} is a newer run of {analysis}: {names}. {hint}"))
    }
}

/// An analysis, as warnings name it.
pub(super) fn describe(tool: &str, category: &str, stream: Option<&str>) -> String {
    match stream {
        Some(stream) => format!("{tool} without category in {stream}"),
        None if category.is_empty() => format!("{tool} without category"),
        None => format!("{tool} of category {category}"),
    }
}

impl ImportFindings {
    /// The audit's part of this analysis.
    pub(super) fn part_of(&self, key: &AnalysisKey) -> Option<usize> {
        self.parts.iter().position(|part| {
            part.tool == key.tool && part.category == key.category && part.stream == key.stream
        })
    }
}
