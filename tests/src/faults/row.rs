//! One row of the fault table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Fault;
use crate::Backend;

/// Result of a fault.
#[derive(Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// The database.
    pub backend: Backend,
    /// Number of responses since the injection by status; 0 means no response.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of readiness results during the fault, by status and failed checks.
    pub readiness: BTreeMap<String, u64>,
    /// Longest duration of a write by the observer.
    pub longest: Duration,
    /// Time from the repair to the first acknowledged write of the observer that was sent after it;
    /// `None` if it took more than a minute.
    pub recovery: Option<Duration>,
    /// Number of acknowledged requests.
    pub acknowledged: u64,
    /// Defects found in the database.
    pub defects: Vec<String>,
    /// Further notes.
    pub note: String,
    /// Why the fault was not injected; `None` if it was.
    pub skipped: Option<String>,
}

impl Row {
    /// Returns a row for a fault that cannot be injected here.
    #[must_use]
    pub fn skipped(fault: Fault, backend: Backend, why: String) -> Self {
        Self {
            fault,
            backend,
            statuses: BTreeMap::new(),
            readiness: BTreeMap::new(),
            longest: Duration::ZERO,
            recovery: None,
            acknowledged: 0,
            defects: Vec::new(),
            note: String::new(),
            skipped: Some(why),
        }
    }

    /// Whether writes worked again, and none was lost or duplicated.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.skipped.is_some() || self.recovery.is_some() && self.defects.is_empty()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {:?} | {:?} ", self.fault, self.backend)?;
        if let Some(why) = &self.skipped {
            return write!(f, "| skipped: {why} |");
        }
        write!(f, "| {:?} | {:?} ", self.statuses, self.readiness)?;
        match self.recovery {
            Some(took) => write!(f, "| {:.1} s ", took.as_secs_f64())?,
            None => write!(f, "| never ")?,
        }
        write!(f, "| {:.1} s | {} ", self.longest.as_secs_f64(), self.acknowledged)?;
        write!(f, "| {} | {} |", self.defects.len(), self.note)?;
        for defect in self.defects.iter().take(5) {
            write!(f, "\n    {}", defect.chars().take(300).collect::<String>())?;
        }
        Ok(())
    }
}
