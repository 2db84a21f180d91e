//! Refusals, as the client will read them.

use crate::documents::DocumentError;
use crate::wit::assurance::area::types::ProblemKind;
pub use crate::wit::assurance::area::types::{Problem, Violation};

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, code: None, detail: detail.into(), hint: None, violations: Vec::new() }
    }

    /// 422: a member of the body, named by its JSON Pointer, or a parameter,
    /// named by its name, has the right shape and is wrong all the same.
    pub fn validation(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut problem = Self::new(ProblemKind::ValidationFailed, message.clone());
        problem.violations.push(Violation { pointer: pointer.into(), message });
        problem
    }

    /// 422 with a code of its own, declared in the route.
    pub fn unprocessable(code: &str, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::ValidationFailed, detail).code(code)
    }

    /// 403.
    pub fn permission_denied(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::PermissionDenied, detail)
    }

    /// 404: not there, or not the caller's.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(ProblemKind::NotFound, "There is no such thing here.")
    }

    /// 409 with a code of its own, declared in the route.
    pub fn conflict(code: &str, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Conflict, detail).code(code)
    }

    /// 409: the resource is at this version, not at the one in `If-Match`.
    #[must_use]
    pub fn version_conflict(current: u64) -> Self {
        Self::new(ProblemKind::VersionConflict, format!("The current version is {current}."))
    }

    /// 503: something this needs is away for the moment.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// With a code more exact than the kind's own.
    #[must_use]
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// With advice on what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::NotFound => Self::not_found(),
            DocumentError::AlreadyExists => {
                Self::new(ProblemKind::Conflict, "Another one of this id exists already.")
            }
            DocumentError::VersionConflict(current) => Self::version_conflict(current),
            DocumentError::UniqueConflict(fields) => Self::new(
                ProblemKind::Conflict,
                format!("Another one with the same {} exists already.", fields.join(", ")),
            ),
            DocumentError::InvalidCursor => Self::validation(
                "cursor",
                "This cursor was altered or belongs to another list; begin without one.",
            ),
            DocumentError::LimitExceeded => {
                Self::validation("", "This asks for more than one request may touch.")
            }
        }
    }
}
