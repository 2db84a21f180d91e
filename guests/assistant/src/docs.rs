//! The rules of both operations, for their documentation.

/// Operation 5.
pub(crate) const ENDPOINTS: &str = "\
An OpenAI-compatible server: `GET {base_url}/models` and `POST {base_url}/chat/completions`. \
`api_key` is sealed when it is taken and never shown again; it is sent as a bearer token, to \
`base_url` alone, and may be left out where the server wants none. `base_url` is https, without \
user information, query or fragment, and leads to a public address.\n\n\
`last_validated_at` is null at first: a job lists the server's models with the key, and sets it \
when all of `model_ids` are among them, else `last_error_code`. A conversation uses the newest \
active endpoint that was validated, or else one that was not found to fail.\n\n\
Codes of `last_error_code`: `credential_rejected` (401, 403), `quota_exhausted` and \
`rate_limited` (429), `model_not_found`, `not_found` (404), `context_too_long`, \
`request_rejected` (any other 4xx), `redirected` (3xx, not followed), `upstream_unavailable` \
(5xx), `timeout`, `unresolved`, `unreachable`, `address_refused`, `answer_too_large`, \
`invalid_answer`.";

/// Operation 8.
pub(crate) const CONVERSATIONS: &str = "\
`{}` opens an empty conversation. A `message`, here or later, makes a run: a job that collects \
what the workspace's records say about it and asks the chosen model endpoint. A run is `queued`, \
`running`, then `succeeded` with an `assistant_message_id` or `failed` with an `error_code`; a \
server that may come back is asked three times. Without an endpoint the specialist `workspace` \
answers from the records alone, and says so.\n\n\
An answer's `structured` has the records it cites in `citations` (`label` as in the text, `kind`, \
`id`, `title`, `detail`), `answered_by`, and for a model `model`, `model_endpoint_id` and \
`finish_reason`, else `facts` and `notice`. Only records that were given to the model can be \
cited. Records go to the model as data, apart from the rules; what looks like a credential is \
left out of all that is sent. The model is given no tools.\n\n\
`input_tokens` include `cached_input_tokens`; `cache_hit` says that there are some. `cost_usd` is \
computed from the operator's price table, the setting `model_prices` of the area `assistant`: a \
JSON object of model ids, each with `input`, `output` and, where it differs, `cached_input`, in US \
dollars for a million tokens, as decimal strings. It is null for a model that is not in the \
table, or where the server does not count tokens.\n\n\
`context_snapshot_id` is the workspace's newest context snapshot (operation 19) at the message. \
`route` is `workspace`, or the endpoint's name, a slash and the model.\n\n\
Codes of a run's `error_code`: those of a model endpoint's `last_error_code`, and \
`content_filtered`, `empty_answer`, `endpoint_unavailable` (deleted or switched off meanwhile), \
`internal_error`.";
