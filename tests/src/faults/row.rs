//! One row of the fault table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Fault;
use crate::Backend;

/// What a fault led to.
#[derive(Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// The database.
    pub backend: Backend,
    /// Responses to the clients from the injection on, by status; 0: none.
    pub statuses: BTreeMap<u16, u64>,
    /// What readiness said while the fault lasted, by status and failed checks; none: no response.
    pub readiness: BTreeMap<String, u64>,
    /// The longest that the observer waited for the response to a write.
    pub longest: Duration,
    /// From the repair to the first write that the observer sent afterwards
    /// and that was acknowledged; `None`: not within a minute.
    pub recovery: Option<Duration>,
    /// Acknowledged requests.
    pub acknowledged: u64,
    /// Every defect that the check of the database found.
    pub defects: Vec<String>,
    /// What else there is to say.
    pub note: String,
    /// Why the fault was not injected.
    pub skipped: Option<String>,
}

impl Row {
    /// A fault that cannot be injected here.
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

    /// Whether writes worked again and none was lost or doubled.
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
