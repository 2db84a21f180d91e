//! Codes of the host's problems: a closed list, each with its status, the explanation on its page,
//! and a hint: the client's next step. The refusing code may give a better hint.

use std::borrow::Cow;

use axum::http::StatusCode;

/// Defines the problem codes, each with the explanation and the hint for clients.
macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $code:ident = $name:literal, $status:ident, $explanation:literal, $hint:literal;
    )+) => {
        /// Machine-readable reason of a refusal.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Code {
            $($(#[$doc])* $code,)+
        }

        impl Code {
            /// Every problem code, sorted by status.
            pub(super) const ALL: [Self; [$($name),+].len()] = [$(Self::$code),+];

            /// Returns the code as sent in a problem.
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }

            /// Returns the status of responses with this code.
            pub(super) fn status(self) -> StatusCode {
                match self {
                    $(Self::$code => StatusCode::$status,)+
                }
            }

            /// Returns the text of the code's explanation page.
            pub(super) fn explanation(self) -> &'static str {
                match self {
                    $(Self::$code => $explanation,)+
                }
            }

            fn hint_without_operation(self) -> &'static str {
                match self {
                    $(Self::$code => $hint,)+
                }
            }
        }
    };
}

codes! {
    /// The request violates HTTP.
    MalformedRequest = "malformed_request", BAD_REQUEST,
        "The request violates HTTP: a header cannot be read, the path or query has invalid \
         percent-encoding, or the body cannot be decompressed or was not received completely. Fix \
         the request and send it again.",
        "Fix what `detail` names and send the request again.";
    /// The request has no valid session or access token.
    Unauthenticated = "unauthenticated", UNAUTHORIZED,
        "The request has no valid session cookie and no valid access token: it is missing, expired \
         or revoked. Sign in with POST /v1/auth/login, or send an access token of the workspace as \
         `Authorization: Bearer`.",
        "Sign in with POST /v1/auth/login and send the cookie it sets, or send an access token of \
         the workspace as Authorization: Bearer.";
    /// E-mail, password or code of a sign-in is wrong.
    InvalidCredentials = "invalid_credentials", UNAUTHORIZED,
        "The e-mail address, the password or the code is wrong. The response never says which of \
         them.",
        "Check the credentials and try again; the operators can set a new password.";
    /// The sign-in needs a second factor.
    MfaRequired = "mfa_required", UNAUTHORIZED,
        "The password is correct; this account also needs a code from its authenticator, or a \
         recovery code. Send the same request with `code`.",
        "Send the same request with `code`.";
    /// A write without the session's CSRF token, or from another site.
    CsrfFailed = "csrf_failed", FORBIDDEN,
        "A request that changes data needs the session's token in X-CSRF-Token, and must not come \
         from a page of another site. GET /v1/auth/session returns the token.",
        "GET /v1/auth/session returns `csrf_token`; send it as X-CSRF-Token.";
    /// The role, the credential or the link does not permit the operation.
    PermissionDenied = "permission_denied", FORBIDDEN,
        "The request is not permitted; `detail` names the reason. The role of the user or of the \
         access token is too low, the session began too long ago, the operation needs a session \
         and takes no access token, or a link has expired or is not valid. Only the operators can \
         change roles.",
        "Let a user with a sufficient role send the request; the operators can change roles.";
    /// No trusted publisher signed the component.
    SignatureRefused = "signature_refused", FORBIDDEN,
        "For operators: no publisher who is trusted for this area signed the component. Sign it \
         with `assurance area sign`, and name the publisher's key in the configuration.",
        "Sign it with `assurance area sign`, and name the publisher's key in the configuration.";
    /// The feature is switched off in this workspace.
    FeatureDisabled = "feature_disabled", FORBIDDEN,
        "The workspace has this feature switched off.",
        "The operators can switch it on for the workspace.";
    /// The resource does not exist, or the caller may not see it.
    NotFound = "not_found", NOT_FOUND,
        "It does not exist, or you may not see it. A workspace of which you are not a member looks \
         exactly the same.",
        "Check the path, each id in it, and your permission to see them.";
    /// The path exists with other methods.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED,
        "The path exists, but not with this method. The Allow header lists the methods of the \
         path.",
        "Use one of the methods in the Allow header.";
    /// The current state of the resource does not allow the operation.
    Conflict = "conflict", CONFLICT,
        "The resource's current state does not allow this request, or the name is already in use. \
         Read the resource again before you decide what to send.",
        "Read the resource again before you decide what to send.";
    /// The area version to deploy breaks clients of the live version.
    IncompatibleVersion = "incompatible_version", CONFLICT,
        "For operators: the version would break clients of the live one; `detail` lists the \
         differences. Fix it, or force it with a reason.",
        "Fix what `detail` lists, or force the version with a reason.";
    /// The area version to deploy asks for capabilities that were not granted.
    ApprovalNeeded = "approval_needed", CONFLICT,
        "For operators: the version asks for more capabilities than the live one was granted. It \
         is staged until an operator with the scope `approve` approves them.",
        "An operator with the scope `approve` can approve them.";
    /// `If-Match` names another version of the resource than the current one.
    VersionConflict = "version_conflict", CONFLICT,
        "The resource has changed since the version in If-Match. Read it again, apply your change \
         to the new version, and send that.",
        "Read it again, apply your change to the new version, and send that.";
    /// The first request with this idempotency key is still running.
    IdempotencyInProgress = "idempotency_in_progress", CONFLICT,
        "The first request with this Idempotency-Key is still running. Wait for the seconds in \
         Retry-After and send the same request again: it returns the response to the first one.",
        "Send the same request again after Retry-After.";
    /// The body exceeds the operation's limit.
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE,
        "The body is larger than this operation accepts. The limit counts decompressed bytes.",
        "Send a smaller body; the limit counts decompressed bytes.";
    /// The operation does not accept this media type or encoding.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE,
        "The operation does not accept this Content-Type or Content-Encoding.",
        "Send the Content-Type that the operation takes.";
    /// A parameter or the body is invalid.
    ValidationFailed = "validation_failed", UNPROCESSABLE_ENTITY,
        "A parameter, a header or the body does not have the shape or content this operation \
         needs. `detail` names each violation by JSON Pointer or parameter.",
        "Fix what `detail` names and send the request again.";
    /// The idempotency key was used with another body or for another resource.
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY,
        "This Idempotency-Key was already used with another body or for another resource. Use a \
         new key for a new request. A retry has the same path and body.",
        "Use a new key for a new request; a retry has the same path and body.";
    /// A rate limit is exceeded.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS,
        "Too many requests. Wait for the seconds in Retry-After. The RateLimit header shows the \
         remaining units, so that you can slow down earlier.",
        "Wait for the seconds in Retry-After, and slow down when RateLimit shows few remaining \
         units.";
    /// The host failed.
    InternalError = "internal_error", INTERNAL_SERVER_ERROR,
        "The service failed. The request had no effect. The operators can find it by request_id.",
        "Send the request again later; the operators can find it by request_id.";
    /// The area's code failed.
    AreaFault = "area_fault", BAD_GATEWAY,
        "The part of the service that executes this operation failed. The request had no effect. \
         The operators can find it by request_id.",
        "Send the request again later; the operators can find it by request_id.";
    /// A required resource is unavailable at present.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE,
        "Something this operation needs is unavailable for the moment. Send the request again \
         after Retry-After; with the same Idempotency-Key it takes effect only once, even if the \
         first attempt succeeded.",
        "Send the request again after Retry-After.";
    /// The area has too many requests.
    AreaOverloaded = "area_overloaded", SERVICE_UNAVAILABLE,
        "The part of the service that executes this operation is overloaded. The request had no \
         effect; send it again after Retry-After.",
        "Send the request again after Retry-After.";
    /// The area exceeded its deadline.
    AreaTimeout = "area_timeout", GATEWAY_TIMEOUT,
        "The part of the service that executes this operation took too long. The request had no \
         effect.",
        "Request less at once, or send the request again later.";
    /// The disk of the database, or the workspace, is full.
    InsufficientStorage = "insufficient_storage", INSUFFICIENT_STORAGE,
        "The disk with the service's data is full, or the workspace has reached its storage limit; \
         `detail` names which. The request had no effect; reads still work. With Retry-After, send \
         the request again after it. Without, delete data that is not needed, or ask the operators \
         for a higher limit.",
        "Send the request again later; the operators can find it by request_id.";
}

impl Code {
    /// Returns the hint of a problem: the client's next step. It names the page of the operation if
    /// that page says what to send.
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

    #[test]
    fn every_code_says_what_to_do_next() {
        for code in Code::ALL {
            for operation in [None, Some("create_note")] {
                assert!(code.hint(operation).ends_with('.'), "{code:?}");
            }
        }
    }
}
