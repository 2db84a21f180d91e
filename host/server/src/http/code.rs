//! Codes of the host's problems: a closed list, each with its status and the explanation on its
//! page.

use axum::http::StatusCode;

/// Machine-readable reason of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    /// The request violates HTTP.
    MalformedRequest,
    /// The request has no valid session or access token.
    Unauthenticated,
    /// E-mail, password or code of a sign-in is wrong.
    InvalidCredentials,
    /// The sign-in needs a second factor.
    MfaRequired,
    /// A write without the session's CSRF token, or from another site.
    CsrfFailed,
    /// The role or the access token does not permit the operation.
    PermissionDenied,
    /// No trusted publisher signed the component.
    SignatureRefused,
    /// The feature is switched off in this workspace.
    FeatureDisabled,
    /// The resource does not exist, or the caller may not see it.
    NotFound,
    /// The path exists with other methods.
    MethodNotAllowed,
    /// The current state of the resource does not allow the operation.
    Conflict,
    /// The version breaks clients of the live version.
    IncompatibleVersion,
    /// The version asks for capabilities that were not granted.
    ApprovalNeeded,
    /// `If-Match` names another version.
    VersionConflict,
    /// The first request with this key is still running.
    IdempotencyInProgress,
    /// The body exceeds the operation's limit.
    PayloadTooLarge,
    /// The operation does not accept this media type or encoding.
    UnsupportedMediaType,
    /// A parameter or the body is invalid.
    ValidationFailed,
    /// The idempotency key was used with another body.
    IdempotencyKeyReused,
    /// A rate limit is exceeded.
    RateLimited,
    /// The host failed.
    InternalError,
    /// The area's code failed.
    AreaFault,
    /// A required resource is unavailable at present.
    Unavailable,
    /// The disk of the database is full.
    InsufficientStorage,
    /// The area has too many requests.
    AreaOverloaded,
    /// The area exceeded its deadline.
    AreaTimeout,
}

impl Code {
    /// Every code, sorted by status.
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

    /// Returns the code as sent in a problem.
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

    /// Returns the status of responses with this code.
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

    /// Returns the text of the code's explanation page.
    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::MalformedRequest => {
                "The request violates HTTP: a header cannot be read, the path or query has \
                invalid percent-encoding, or the body cannot be decompressed or was not received \
                completely. Fix the request and send it again."
            }
            Self::Unauthenticated => {
                "The request has no valid session cookie and no valid access token: it is missing, \
                expired or revoked. Sign in with POST /v1/auth/login, or send an access token of \
                the workspace as `Authorization: Bearer`."
            }
            Self::InvalidCredentials => {
                "The e-mail address, the password or the code is wrong. The response never says \
                which of them."
            }
            Self::MfaRequired => {
                "The password is correct; this account also needs a code from its authenticator, \
                or a recovery code. Send the same request with `code`."
            }
            Self::CsrfFailed => {
                "A request that changes data needs the session's token in X-CSRF-Token, and must \
                not come from a page of another site. GET /v1/auth/session returns the token."
            }
            Self::PermissionDenied => {
                "You are a member of this workspace, but your role, or that of the access token, \
                does not allow this operation. An owner or admin can change roles."
            }
            Self::SignatureRefused => {
                "For operators: no publisher who is trusted for this area signed the component. \
                Sign it with `assurance area sign`, and name the publisher's key in the \
                configuration."
            }
            Self::IncompatibleVersion => {
                "For operators: the version would break clients of the live one; `detail` lists \
                the differences. Fix it, or force it with a reason."
            }
            Self::ApprovalNeeded => {
                "For operators: the version asks for more capabilities than the live one was \
                granted. It is staged until an operator with the scope `approve` approves them."
            }
            Self::FeatureDisabled => "The workspace has this feature switched off.",
            Self::NotFound => {
                "It does not exist, or you may not see it. A workspace of which you are not a \
                member looks exactly the same."
            }
            Self::MethodNotAllowed => {
                "The path exists, but not with this method. The Allow header lists the methods of \
                the path."
            }
            Self::Conflict => {
                "The resource's current state does not allow this request, or the name is already \
                in use. Read the resource again before you decide what to send."
            }
            Self::VersionConflict => {
                "The resource has changed since the version in If-Match. Read it again, apply \
                your change to the new version, and send that."
            }
            Self::IdempotencyInProgress => {
                "The first request with this Idempotency-Key is still running. Wait for the \
                seconds in Retry-After and send the same request again: it returns the response \
                to the first one."
            }
            Self::PayloadTooLarge => {
                "The body is larger than this operation accepts. The limit counts decompressed \
                bytes."
            }
            Self::UnsupportedMediaType => {
                "The operation does not accept this Content-Type or Content-Encoding."
            }
            Self::ValidationFailed => {
                "A parameter, a header or the body does not have the shape or content this \
                operation needs. `detail` names each violation by JSON Pointer or parameter."
            }
            Self::IdempotencyKeyReused => {
                "This Idempotency-Key was already used with another body. Use a new key for a new \
                request, and the same body for a retry."
            }
            Self::RateLimited => {
                "Too many requests. Wait for the seconds in Retry-After. The RateLimit header \
                shows the remaining units, so that you can slow down earlier."
            }
            Self::InternalError => {
                "The service failed. The request had no effect. The operators can find it by \
                request_id."
            }
            Self::AreaFault => {
                "The part of the service that executes this operation failed. The request had no \
                effect. The operators can find it by request_id."
            }
            Self::Unavailable => {
                "Something this operation needs is unavailable for the moment. Send the request \
                again after Retry-After; with the same Idempotency-Key it takes effect only once, \
                even if the first attempt succeeded."
            }
            Self::InsufficientStorage => {
                "The disk with the service's data is full. The request had no effect; reads still \
                work. The failure is in the operators' log and metrics. Send the request again \
                after Retry-After."
            }
            Self::AreaOverloaded => {
                "The part of the service that executes this operation is overloaded. The request \
                had no effect; send it again after Retry-After."
            }
            Self::AreaTimeout => {
                "The part of the service that executes this operation took too long. The request \
                had no effect."
            }
        }
    }
}

/// Returns a code's title: `Validation Failed` for `validation_failed`.
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
