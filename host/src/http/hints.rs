//! What a refused client is told to do about it, where whoever refused knows
//! nothing better: every problem carries a hint.

use super::code::Code;

impl Code {
    /// The next step, for people.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Unauthenticated => {
                "Sign in with POST /v1/auth/login and send the cookie it sets."
            }
            Self::InvalidCredentials => {
                "Try again with the right ones; the operators can set a new password."
            }
            Self::MfaRequired => "Send the same request with `code`.",
            Self::CsrfFailed => "GET /v1/auth/session gives `csrf_token`; send it as X-CSRF-Token.",
            Self::PermissionDenied => "An owner or admin of the workspace can change roles.",
            Self::FeatureDisabled => "The operators can switch it on for the workspace.",
            Self::NotFound => {
                "Check the path and each id in it, and whether you may see what they name."
            }
            Self::MethodNotAllowed => "Use one of the methods in the Allow header.",
            Self::MalformedRequest => "Mend what `detail` names and send the request again.",
            Self::PayloadTooLarge => "Send less; the limit counts decompressed bytes.",
            Self::UnsupportedMediaType => {
                "/openapi.json says which Content-Type the operation takes."
            }
            Self::ValidationFailed => {
                "Correct what `detail` names; /openapi.json has the shape of every request."
            }
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
                "Read it again, apply your change to what you find, and send that."
            }
            Self::IdempotencyInProgress => "Send the same request again after Retry-After.",
            Self::IdempotencyKeyReused => {
                "Use a fresh key for a new request, and the same body for a retry."
            }
            _ => "Read it again and decide anew.",
        }
    }

    fn hint_for_operators(self) -> &'static str {
        match self {
            Self::SignatureRefused => {
                "Sign it with `assurance area sign`, and name the publisher's key in the \
                 configuration."
            }
            Self::ApprovalNeeded => "An operator with the scope `approve` can grant it.",
            _ => "Mend what `detail` lists, or force the version with a reason.",
        }
    }

    fn hint_to_wait(self) -> &'static str {
        match self {
            Self::RateLimited => "Wait as Retry-After says, and slow down as RateLimit falls.",
            Self::Unavailable | Self::AreaOverloaded => "Send the request again after Retry-After.",
            Self::AreaTimeout => "Ask for less at once, or send the request again later.",
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
            assert!(code.hint().ends_with('.'), "{code:?}");
        }
    }
}
