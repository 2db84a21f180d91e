//! Descriptions of both operations for OpenAPI.

/// Text for the OpenAPI document about operation 5, model endpoints.
pub(crate) const ENDPOINTS: &str = "An OpenAI-compatible server: `GET {base_url}/models` and \
    `POST {base_url}/chat/completions`. `api_key` is encrypted when it is received and never \
    returned. It is sent as a bearer token, only to `base_url`, and may be omitted if the server \
    needs none. `base_url` is https, without user information, query or fragment, and has a \
    public address.\n\n\
    `last_validated_at` is null at first: a job lists the server's models with the key, and sets \
    it if the list has all of `model_ids`; otherwise it sets `last_error_code`. A conversation \
    uses the newest active endpoint that was validated, otherwise one whose validation did not \
    fail.\n\n\
    Codes of `last_error_code`: `credential_rejected` (401, 403), `quota_exhausted` and \
    `rate_limited` (429), `model_not_found`, `not_found` (404), `context_too_long`, \
    `request_rejected` (any other 4xx), `redirected` (3xx, not followed), `upstream_unavailable` \
    (5xx), `timeout`, `unresolved`, `unreachable`, `address_refused`, `answer_too_large`, \
    `invalid_answer`.";

/// Text for the OpenAPI document about operation 8, conversations.
pub(crate) const CONVERSATIONS: &str = "`{}` opens an empty conversation. A `message`, here or \
    later, starts a run: a job that collects the workspace's records about it and calls the \
    chosen model endpoint. A run is `queued`, `running`, then `succeeded` with an \
    `assistant_message_id` or `failed` with an `error_code`; after a temporary failure the server \
    is called up to three times. Without an endpoint the specialist `workspace` answers from the \
    records alone; the answer says so.\n\n\
    An answer's `structured` has the records it cites in `citations` (`label` as in the text, \
    `kind`, `id`, `title`, `detail`), `answered_by`, and for a model `model`, `model_endpoint_id` \
    and `finish_reason`, else `facts` and `notice`. Only records that were given to the model can \
    be cited. Records go to the model as data, separate from the rules; text that looks like a \
    credential is never sent. The model has no tools.\n\n\
    `input_tokens` include `cached_input_tokens`; `cache_hit` is true if there are any. \
    `cost_usd` is computed from the operator's price table, the setting `model_prices` of the \
    area `assistant`: a JSON object of model ids, each with `input`, `output` and, where it \
    differs, `cached_input`, in US dollars for a million tokens, as decimal strings. It is null \
    for a model that is not in the table, or if the server does not count tokens.\n\n\
    `context_snapshot_id` is the workspace's newest context snapshot (operation 19) at the \
    message. `route` is `workspace`, or the endpoint's name, a slash and the model.\n\n\
    Codes of a run's `error_code`: those of a model endpoint's `last_error_code`, and \
    `content_filtered`, `empty_answer`, `endpoint_unavailable` (deleted or switched off \
    meanwhile), `cancelled` (an admin cancelled its job in the queue), `internal_error`.";
