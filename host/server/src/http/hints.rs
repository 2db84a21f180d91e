//! Default hints of problems: what the client can do. Every problem has a hint; the refusing code
//! may give a better one.

use std::borrow::Cow;

use super::code::Code;

impl Code {
    /// Returns the next step for the client. It names the page of the operation if that page says
    /// what to send.
    pub(super) fn hint(self, operation: Option<&str>) -> Cow<'static, str> {
        match (self, operation) {
            (Self::ValidationFailed, Some(operation)) => {
                format!("Fix what `detail` names; /reference/{operation} has the expected request.")
                    .into()
            }
            (Self::UnsupportedMediaType, Some(operation)) => {
                format!("/reference/{operation} names the Content-Type to send.").into()
            }
            _ => self.hint_without_operation().into(),
        }
    }

    fn hint_without_operation(self) -> &'static str {
        match self {
            Self::Unauthenticated => {
                "Sign in with POST /v1/auth/login and send the cookie it sets, or send an access \
                 token of the workspace as Authorization: Bearer."
            }
            Self::InvalidCredentials => {
                "Check the credentials and try again; the operators can set a new password."
            }
            Self::MfaRequired => "Send the same request with `code`.",
            Self::CsrfFailed => {
                "GET /v1/auth/session returns `csrf_token`; send it as X-CSRF-Token."
            }
            Self::PermissionDenied => "An owner or admin of the workspace can change roles.",
            Self::FeatureDisabled => "The operators can switch it on for the workspace.",
            Self::NotFound => "Check the path, each id in it, and your permission to see them.",
            Self::MethodNotAllowed => "Use one of the methods in the Allow header.",
            Self::MalformedRequest | Self::ValidationFailed => {
                "Fix what `detail` names and send the request again."
            }
            Self::PayloadTooLarge => "Send a smaller body; the limit counts decompressed bytes.",
            Self::UnsupportedMediaType => "Send the Content-Type that the operation takes.",
            Self::Conflict
            | Self::VersionConflict
            | Self::IdempotencyInProgress
            | Self::IdempotencyKeyReused => self.hint_of_conflict(),
            Self::SignatureRefused | Self::IncompatibleVersion | Self::ApprovalNeeded => {
                self.hint_for_operators()
            }
            Self::RateLimited
            | Self::InternalError
            | Self::AreaFault
            | Self::Unavailable
            | Self::InsufficientStorage
            | Self::AreaOverloaded
            | Self::AreaTimeout => self.hint_to_wait(),
        }
    }

    fn hint_of_conflict(self) -> &'static str {
        match self {
            Self::VersionConflict => {
                "Read it again, apply your change to the new version, and send that."
            }
            Self::IdempotencyInProgress => "Send the same request again after Retry-After.",
            Self::IdempotencyKeyReused => {
                "Use a new key for a new request, and the same body for a retry."
            }
            _ => "Read the resource again before you decide what to send.",
        }
    }

    fn hint_for_operators(self) -> &'static str {
        match self {
            Self::SignatureRefused => {
                "Sign it with `assurance area sign`, and name the publisher's key in the \
                 configuration."
            }
            Self::ApprovalNeeded => "An operator with the scope `approve` can approve them.",
            _ => "Fix what `detail` lists, or force the version with a reason.",
        }
    }

    fn hint_to_wait(self) -> &'static str {
        match self {
            Self::RateLimited => {
                "Wait for the seconds in Retry-After, and slow down when \
                RateLimit shows few remaining units."
            }
            Self::Unavailable | Self::AreaOverloaded => "Send the request again after Retry-After.",
            Self::AreaTimeout => "Request less at once, or send the request again later.",
            _ => "Send the request again later; the operators can find it by request_id.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_what_to_do_next() {
        for code in Code::ALL {
            for operation in [None, Some("create_note")] {
                assert!(code.hint(operation).ends_with('.'), "{code:?}");
            }
        }
    }
}
