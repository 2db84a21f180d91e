//! Every code a problem of the host can carry: a closed list, each with its
//! status and the explanation its page gives.

use axum::http::StatusCode;

/// Why a request was refused, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    /// Broken at the level of HTTP.
    MalformedRequest,
    /// No valid session.
    Unauthenticated,
    /// Sign-in with a wrong e-mail, password or code.
    InvalidCredentials,
    /// Sign-in needs a second factor.
    MfaRequired,
    /// A write without the session's token, or from a foreign page.
    CsrfFailed,
    /// Not with this role, or this token.
    PermissionDenied,
    /// Nobody who is trusted vouches for the component.
    SignatureRefused,
    /// Not in this workspace at present.
    FeatureDisabled,
    /// Not there, or not the caller's.
    NotFound,
    /// The path knows other methods.
    MethodNotAllowed,
    /// The state does not allow it.
    Conflict,
    /// The version would break those who rely on the live one.
    IncompatibleVersion,
    /// The version asks for more than was granted.
    ApprovalNeeded,
    /// `If-Match` names another version.
    VersionConflict,
    /// The first request with the key is not done.
    IdempotencyInProgress,
    /// Larger than the operation takes.
    PayloadTooLarge,
    /// Not a media type or encoding the operation takes.
    UnsupportedMediaType,
    /// A parameter or the body is wrong.
    ValidationFailed,
    /// The key was used with another body.
    IdempotencyKeyReused,
    /// Too many requests.
    RateLimited,
    /// The host's own mistake.
    InternalError,
    /// The area's code failed.
    AreaFault,
    /// Something needed is away for the moment.
    Unavailable,
    /// The disk that documents are kept on is full.
    InsufficientStorage,
    /// The area has more to do than it can.
    AreaOverloaded,
    /// The area took too long.
    AreaTimeout,
}

impl Code {
    /// Every code, in the order of statuses.
    pub(super) const ALL: [Self; 26] = [
        Self::MalformedRequest,
        Self::Unauthenticated,
        Self::InvalidCredentials,
        Self::MfaRequired,
        Self::CsrfFailed,
        Self::PermissionDenied,
        Self::SignatureRefused,
        Self::FeatureDisabled,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::IncompatibleVersion,
        Self::ApprovalNeeded,
        Self::VersionConflict,
        Self::IdempotencyInProgress,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::ValidationFailed,
        Self::IdempotencyKeyReused,
        Self::RateLimited,
        Self::InternalError,
        Self::AreaFault,
        Self::Unavailable,
        Self::AreaOverloaded,
        Self::AreaTimeout,
        Self::InsufficientStorage,
    ];

    /// As sent.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::MalformedRequest => "malformed_request",
            Self::Unauthenticated => "unauthenticated",
            Self::InvalidCredentials => "invalid_credentials",
            Self::MfaRequired => "mfa_required",
            Self::CsrfFailed => "csrf_failed",
            Self::PermissionDenied => "permission_denied",
            Self::SignatureRefused => "signature_refused",
            Self::IncompatibleVersion => "incompatible_version",
            Self::ApprovalNeeded => "approval_needed",
            Self::FeatureDisabled => "feature_disabled",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Conflict => "conflict",
            Self::VersionConflict => "version_conflict",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::ValidationFailed => "validation_failed",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::RateLimited => "rate_limited",
            Self::InternalError => "internal_error",
            Self::AreaFault => "area_fault",
            Self::Unavailable => "unavailable",
            Self::AreaOverloaded => "area_overloaded",
            Self::AreaTimeout => "area_timeout",
            Self::InsufficientStorage => "insufficient_storage",
        }
    }

    /// The status it is sent with.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::MalformedRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated | Self::InvalidCredentials | Self::MfaRequired => {
                StatusCode::UNAUTHORIZED
            }
            Self::CsrfFailed
            | Self::PermissionDenied
            | Self::SignatureRefused
            | Self::FeatureDisabled => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict
            | Self::IncompatibleVersion
            | Self::ApprovalNeeded
            | Self::VersionConflict
            | Self::IdempotencyInProgress => StatusCode::CONFLICT,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::ValidationFailed | Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::AreaFault => StatusCode::BAD_GATEWAY,
            Self::Unavailable | Self::AreaOverloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::AreaTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    /// What the problem's page says.
    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::MalformedRequest => {
                "The request is broken at the level of HTTP: a header that cannot be read, a path or query with bad percent-encoding, a body that does not decompress or does not arrive. Send it again as HTTP says."
            }
            Self::Unauthenticated => {
                "The request has no valid session cookie: it is missing, expired or revoked. Sign in with POST /v1/auth/login."
            }
            Self::InvalidCredentials => {
                "The e-mail address, the password or the code is wrong. Which of them is never told."
            }
            Self::MfaRequired => {
                "The password is right; this account also needs a code from its authenticator, or a recovery code. Send the same request with `code`."
            }
            Self::CsrfFailed => {
                "A request that changes something needs the session's token in X-CSRF-Token, and must not come from a page of another site. GET /v1/auth/session gives the token."
            }
            Self::PermissionDenied => {
                "You are a member of this workspace, but your role does not allow this operation. An owner or admin can change roles."
            }
            Self::SignatureRefused => {
                "For operators: nobody who is trusted with this area vouches for the component. Sign it with `assurance area sign`, and name the publisher's key in the configuration."
            }
            Self::IncompatibleVersion => {
                "For operators: the version would break those who rely on the live one; `detail` lists how. Mend it, or force it with a reason."
            }
            Self::ApprovalNeeded => {
                "For operators: the version asks for more than the live one was granted. It is kept until an operator with the scope `approve` grants that."
            }
            Self::FeatureDisabled => "The workspace has this feature switched off.",
            Self::NotFound => {
                "There is nothing here, or nothing that you may see. A workspace you are not a member of looks exactly the same."
            }
            Self::MethodNotAllowed => {
                "The path is known, but not with this method. The Allow header lists those it answers to."
            }
            Self::Conflict => {
                "What you ask for is not possible in the present state of the thing, or another one has taken the name. Read it again and decide anew."
            }
            Self::VersionConflict => {
                "The thing has changed since the version in If-Match. Read it again, apply your change to what you find, and send that."
            }
            Self::IdempotencyInProgress => {
                "The first request with this Idempotency-Key has not ended yet. Wait as Retry-After says and send the same request again: you get the first one's answer."
            }
            Self::PayloadTooLarge => {
                "The body is larger than this operation takes. The limit counts decompressed bytes."
            }
            Self::UnsupportedMediaType => {
                "The operation does not take this Content-Type or Content-Encoding."
            }
            Self::ValidationFailed => {
                "A parameter, a header or the body does not have the shape or content this operation needs. `detail` names each violation by JSON Pointer or parameter."
            }
            Self::IdempotencyKeyReused => {
                "This Idempotency-Key was already used with another body. Use a fresh key for a new request, and the same body for a retry."
            }
            Self::RateLimited => {
                "Too many requests. Wait as Retry-After says; RateLimit tells what is left, so that you can slow down before."
            }
            Self::InternalError => {
                "The service made a mistake. Nothing of the request was kept. The operators can find it by request_id."
            }
            Self::AreaFault => {
                "The part of the service that answers this operation failed. Nothing of the request was kept. The operators can find it by request_id."
            }
            Self::Unavailable => {
                "Something this operation needs is unavailable for the moment. Send the request again after Retry-After; with the same Idempotency-Key it is carried out once, even if the first attempt was."
            }
            Self::InsufficientStorage => {
                "The disk that the service keeps its data on is full. Nothing of the request was kept, and reading goes on. The operators have been notified by the log and the metrics; send the request again after Retry-After."
            }
            Self::AreaOverloaded => {
                "The part of the service that answers this operation has more to do than it can. Nothing was kept; send the request again after Retry-After."
            }
            Self::AreaTimeout => {
                "The part of the service that answers this operation took too long. Nothing was kept."
            }
        }
    }
}

/// `validation_failed` is titled `Validation Failed`.
pub(super) fn title(code: &str) -> String {
    let words = code.split('_').map(|word| {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) => first.to_ascii_uppercase().to_string() + letters.as_str(),
            None => String::new(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_read_like_the_contract_says() {
        assert_eq!(title(Code::ValidationFailed.as_str()), "Validation Failed");
        assert_eq!(title("signature_invalid"), "Signature Invalid");
    }

    #[test]
    fn every_code_is_listed_once() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
