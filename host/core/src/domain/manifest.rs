//! An area's manifest; `wit/manifest.wit` defines the same fields.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::job::Lane;
use super::role::Role;
use super::words::words;

words! {
    /// An HTTP method of a route.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Method, "a method" {
        /// Reads; has no side effects.
        Get = "GET",
        /// Creates a resource or starts an action.
        Post = "POST",
        /// Replaces a resource or sends content.
        Put = "PUT",
        /// Changes a resource.
        Patch = "PATCH",
        /// Deletes a resource.
        Delete = "DELETE",
    }
}

/// Type and bounds of a parameter's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ParameterKind {
    /// Text; both bounds are inclusive.
    Text {
        /// Minimum length of the text, in characters.
        min_length: u32,
        /// Maximum length of the text, in characters.
        max_length: u32,
    },
    /// An integer; both bounds are inclusive.
    Integer {
        /// Smallest value that is accepted.
        minimum: i64,
        /// Largest value that is accepted.
        maximum: i64,
    },
    /// `true` or `false`.
    Boolean,
    /// A UUID (RFC 9562).
    Uuid,
    /// A timestamp (RFC 3339).
    Timestamp,
    /// A text that must be one of the listed words.
    OneOf {
        /// The words that are accepted.
        values: Vec<String>,
    },
}

/// Part of the request that contains a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterPlace {
    /// The parameter is a part of the path template.
    Path,
    /// The parameter is in the query string.
    Query,
    /// The parameter is a header.
    Header,
}

/// Declaration of one parameter of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterSpec {
    /// Name of the parameter, as clients send it.
    pub name: String,
    /// Part of the request that contains the parameter.
    pub place: ParameterPlace,
    /// Description of the parameter, for OpenAPI.
    pub summary: String,
    /// Type and bounds of the parameter's values.
    pub kind: ParameterKind,
    /// Whether a request without the parameter is refused.
    pub required: bool,
    /// Value of the parameter if the client sends none; `None`: no default.
    pub default: Option<Json>,
}

/// Declaration of one part of a multipart request body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormPart {
    /// Name of the form part, as clients send it.
    pub name: String,
    /// Description of the form part, for OpenAPI.
    pub summary: String,
    /// Whether a request without the form part is refused.
    pub required: bool,
    /// Whether the form part is a file; otherwise it is a text field.
    pub file: bool,
    /// Maximum size of the form part's content, in bytes.
    pub max_bytes: u64,
}

/// The kind of request body that a route accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// The route accepts no body.
    None,
    /// A JSON body that is valid against this schema.
    Json(Json),
    /// A `multipart/form-data` body with these parts.
    Multipart(Vec<FormPart>),
    /// A body with any content, streamed to the blob store.
    Blob,
}

/// How the host handles the header `Idempotency-Key` of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdempotencyMode {
    /// The host ignores `Idempotency-Key`.
    None,
    /// `Idempotency-Key` is accepted. A repeated request with the same key gets
    /// the stored response.
    Optional,
    /// A request without `Idempotency-Key` is refused. A repeated request with
    /// the same key gets the stored response.
    Required,
    /// A request without `Idempotency-Key` is refused. The area, not the host,
    /// recognizes repeated requests.
    KeptByArea,
}

/// Weight of a request in the rate limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateClass {
    /// A small read; takes as many units from the rate limits as `rates.light_units` says.
    Light,
    /// An ordinary call; takes as many units from the rate limits as `rates.standard_units` says.
    Standard,
    /// An import or a rebuild; takes as many units from the rate limits as `rates.heavy_units`
    /// says.
    Heavy,
}

/// Part of a request that names its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSource {
    /// The workspace is named by the path parameter `workspace_id`.
    Path,
    /// The workspace is named by the member of the JSON body with this name.
    BodyMember(String),
    /// The workspace is named by the signed link that authorizes the request.
    SignedLink(SignedLinkSpec),
}

/// Location of a signed link's token, and who may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Link")]
pub struct SignedLinkSpec {
    /// Name of the query parameter that contains the signed link's token.
    pub parameter: String,
    /// Who may use the signed link.
    pub holder: LinkHolder,
}

/// Who may use a signed link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkHolder {
    /// Anybody who has the link, on behalf of the user who requested it.
    Bearer,
    /// A signed-in user who has the link.
    SignedIn,
    /// The session in which the link was signed.
    SameSession,
}

/// One operation of an area's HTTP API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// Operation id, unique among the operations of all areas.
    pub operation_id: String,
    /// HTTP method of the operation.
    pub method: Method,
    /// Path template of the operation, with parameters in braces.
    pub path: String,
    /// Summary of the operation in one line, for documentation.
    pub summary: String,
    /// Description of the operation, of any length, for documentation.
    pub description: String,
    /// Whether the operation is one of the 22 of the published contract.
    pub in_contract: bool,
    /// Part of the request that names its workspace.
    pub workspace: WorkspaceSource,
    /// Lowest role that may call the operation.
    pub least_role: Role,
    /// Feature flag that must be on in the workspace; `None` if the operation
    /// needs none.
    pub feature_flag: Option<String>,
    /// All parameters of the operation except `workspace_id`.
    pub parameters: Vec<ParameterSpec>,
    /// Kind of request body that the operation accepts.
    pub body: BodyKind,
    /// Largest request body, decompressed, in bytes; 0: the operator's default.
    pub max_body_bytes: u64,
    /// HTTP status of a successful response, 200 to 299.
    pub success_status: u16,
    /// JSON Schema of a successful response's body; `None` if it has no body.
    pub response: Option<Json>,
    /// Problem codes that the operation may return in addition to the common
    /// ones.
    pub problem_codes: Vec<String>,
    /// How the host handles the header `Idempotency-Key`.
    pub idempotency: IdempotencyMode,
    /// How many units a request takes from the rate limits.
    pub rate: RateClass,
    /// Whether the operation may write; if false, writes are refused.
    pub writes: bool,
    /// Deadline of the operation's handler, in milliseconds; 0: the operator's
    /// default.
    pub deadline_ms: u32,
}

/// Type of the values of a document's declared field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// The values are JSON strings.
    Text,
    /// The values are JSON integers.
    Integer,
    /// The values are JSON booleans.
    Boolean,
}

/// A document member that queries can filter and sort by, and that indexes can
/// contain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldSpec {
    /// Name of a top-level member of the document.
    pub name: String,
    /// Type of the field's values.
    pub kind: FieldKind,
}

/// Declaration of a database index on a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexSpec {
    /// Names of the index's declared fields, in order.
    pub fields: Vec<String>,
    /// Whether at most one document of a workspace may have the same values in
    /// these fields.
    pub unique: bool,
}

/// Declaration of a collection of documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionSpec {
    /// Name of the collection without the area's name.
    pub name: String,
    /// Summary of the collection in one line, for documentation.
    pub summary: String,
    /// JSON Schema of the collection's documents.
    pub schema: Json,
    /// Document members that queries and indexes can use.
    pub fields: Vec<FieldSpec>,
    /// Database indexes over the declared fields.
    pub indexes: Vec<IndexSpec>,
    /// Areas that may read the collection; `*`: all.
    pub readers: Vec<String>,
}

impl CollectionSpec {
    /// Returns the member of its documents that lists the events which the area
    /// requests in the document's workspace (`x-requests-events` of the schema).
    #[must_use]
    pub fn requests_events(&self) -> Option<&str> {
        self.schema["x-requests-events"].as_str()
    }
}

/// Declaration of an event that an area publishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventSpec {
    /// Name of the event, dotted and in lower case.
    pub name: String,
    /// Summary of the event in one line, for documentation.
    pub summary: String,
    /// JSON Schema of the event's data.
    pub schema: Json,
}

/// Declaration of a job kind that an area runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpec {
    /// Name of the job kind in snake_case.
    pub name: String,
    /// Lane in which the jobs of this kind run.
    pub lane: Lane,
    /// Number of attempts after which a job is dead.
    pub max_attempts: u32,
    /// Wall-clock limit of one attempt, in milliseconds.
    pub timeout_ms: u32,
}

/// Makes the enum of the capabilities that `wit/` lists.
macro_rules! capabilities {
    ($($(#[$summary:meta])* $variant:ident = $name:literal,)*) => {
        /// Right that an area requests: an interface of the contract, or
        /// `AllEvents`.
        #[derive(
            Clone,
            Copy,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            Debug,
            Serialize,
            Deserialize,
            JsonSchema,
        )]
        pub enum Capability {
            $($(#[$summary])* #[serde(rename = $name)] $variant,)*
            /// Subscription to the events of all areas (`*`). It is not an
            /// interface, so the component's imports do not show it.
            #[serde(rename = "all_events")]
            AllEvents,
        }

        impl Capability {
            /// Capabilities that a component imports, in the contract's order;
            /// all except `AllEvents`.
            pub const IMPORTED: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name of the interface in the contract, or
            /// `all_events`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::AllEvents => "all_events",
                }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/capabilities.rs"));

/// An area's declaration of its API, collections, events, jobs and
/// capabilities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Name of the area, unique and in snake_case.
    pub name: String,
    /// Semantic version of the area's component.
    #[schemars(with = "String")]
    pub version: semver::Version,
    /// Summary of the area in one line, for documentation.
    pub summary: String,
    /// Operations of the area's HTTP API.
    pub routes: Vec<Route>,
    /// Collections of documents that the area stores.
    pub collections: Vec<CollectionSpec>,
    /// Areas that may read this area's blobs; `*`: all.
    pub blob_readers: Vec<String>,
    /// Events that the area publishes.
    pub publishes: Vec<EventSpec>,
    /// Names of the events that the area receives; `*`: all.
    pub subscriptions: Vec<String>,
    /// Job kinds that the area runs.
    pub jobs: Vec<JobSpec>,
    /// Capabilities that the area requests.
    pub capabilities: Vec<Capability>,
}

impl Manifest {
    /// Returns all capabilities that an operator must grant: the requested
    /// imports, and `AllEvents` if the area subscribes to `*`.
    #[must_use]
    pub fn asks(&self) -> BTreeSet<Capability> {
        let mut asks: BTreeSet<_> = self.capabilities.iter().copied().collect();
        if self.subscriptions.iter().any(|event| event == "*") {
            asks.insert(Capability::AllEvents);
        }
        asks
    }

    /// Returns whether the area's calls can obtain a secret or something
    /// derived from one: signatures, links, vouchers, responses of other
    /// services.
    #[must_use]
    pub fn can_obtain_secrets(&self) -> bool {
        use Capability::{Egress, Links, Membership, Secrets};
        let met = |one: &Capability| matches!(one, Secrets | Links | Membership | Egress);
        self.capabilities.iter().any(met)
    }
}
