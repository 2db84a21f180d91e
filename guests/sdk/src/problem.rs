//! Constructors of error responses (RFC 9457).

use crate::documents::DocumentError;
use crate::wit::assurance::area::types::ProblemKind;
pub use crate::wit::assurance::area::types::{Problem, Violation};

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, code: None, detail: detail.into(), hint: None, violations: Vec::new() }
    }

    /// Returns a 422 for an invalid value. `pointer` is the JSON Pointer of a member in the body,
    /// or the name of a parameter.
    pub fn validation(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut problem = Self::new(ProblemKind::ValidationFailed, message.clone());
        problem.violations.push(Violation { pointer: pointer.into(), message });
        problem
    }

    /// Returns a 422 with a specific code, which the route must declare.
    pub fn unprocessable(code: &str, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::ValidationFailed, detail).code(code)
    }

    /// Returns a 403.
    pub fn permission_denied(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::PermissionDenied, detail)
    }

    /// Returns a 404: the resource does not exist, or the caller may not see it.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(ProblemKind::NotFound, "There is no such thing here.")
    }

    /// Returns a 409 with a specific code, which the route must declare.
    pub fn conflict(code: &str, detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Conflict, detail).code(code)
    }

    /// Returns a 409: the resource's version is `current`, not the one in `If-Match`.
    #[must_use]
    pub fn version_conflict(current: u64) -> Self {
        Self::new(ProblemKind::VersionConflict, format!("The current version is {current}."))
    }

    /// Returns a 503: a dependency is temporarily unavailable.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// Sets a more specific code than the default one of the kind.
    #[must_use]
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// Sets the hint: how to fix the error.
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
            DocumentError::SearchTextTooLong => {
                Self::validation("", "A search text has more than 1,000 characters; shorten it.")
            }
        }
    }
}
