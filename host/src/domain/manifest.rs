//! What an area declares about itself; the fields mean what `wit/manifest.wit`
//! says.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::job::Lane;
use super::role::Role;

/// An HTTP method a route answers to.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Safe.
    Get,
    /// Creates or acts.
    Post,
    /// Replaces, or sends content.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Every method, in the order of a path's method table.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What values a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ParameterKind {
    /// Characters, both bounds inclusive.
    Text {
        /// At least so many.
        min_length: u32,
        /// At most so many.
        max_length: u32,
    },
    /// Both bounds inclusive.
    Integer {
        /// At least.
        minimum: i64,
        /// At most.
        maximum: i64,
    },
    /// `true` or `false`.
    Boolean,
    /// RFC 9562.
    Uuid,
    /// RFC 3339.
    Timestamp,
    /// One of these words.
    OneOf {
        /// The words.
        values: Vec<String>,
    },
}

/// Where a parameter is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterPlace {
    /// In the path template.
    Path,
    /// In the query string.
    Query,
    /// In a header.
    Header,
}

/// One parameter of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterSpec {
    /// As the client writes it.
    pub name: String,
    /// Where.
    pub place: ParameterPlace,
    /// For OpenAPI.
    pub summary: String,
    /// Which values.
    pub kind: ParameterKind,
    /// Refuse a request without it.
    pub required: bool,
    /// When it is not given.
    pub default: Option<Json>,
}

/// One part of a multipart body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormPart {
    /// The part's name.
    pub name: String,
    /// For OpenAPI.
    pub summary: String,
    /// Refuse a request without it.
    pub required: bool,
    /// A file, not a text field.
    pub file: bool,
    /// Largest content.
    pub max_bytes: u64,
}

/// What a route takes as its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// Nothing.
    None,
    /// JSON of this schema.
    Json(Json),
    /// `multipart/form-data`.
    Multipart(Vec<FormPart>),
    /// Any content, streamed.
    Blob,
}

/// What the host does with `Idempotency-Key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// Takes none.
    None,
    /// Honoured when sent.
    Optional,
    /// Refused without one.
    Required,
    /// Required, recorded by the area.
    KeptByArea,
}

/// How the rate limiter weighs a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateClass {
    /// A small read.
    Light,
    /// The ordinary call.
    Standard,
    /// An import, a rebuild.
    Heavy,
}

/// Where the workspace of a request comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSource {
    /// Path parameter `workspace_id`.
    Path,
    /// A member of the JSON body.
    BodyMember(String),
    /// A link the area had signed.
    SignedLink(Link),
}

/// How a signed link comes, and who may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The query parameter with the token.
    pub parameter: String,
    /// Who may use it.
    pub holder: LinkHolder,
}

/// Who may use a signed link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkHolder {
    /// Whoever has it, in the name of who had it signed.
    Bearer,
    /// A signed-in user who has it.
    SignedIn,
    /// The session in which it was signed.
    SameSession,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// Unique among all areas.
    pub operation_id: String,
    /// Which method.
    pub method: Method,
    /// A path template.
    pub path: String,
    /// One line.
    pub summary: String,
    /// As many as it takes.
    pub description: String,
    /// One of the 22.
    pub in_contract: bool,
    /// Whose it is.
    pub workspace: WorkspaceSource,
    /// Who may.
    pub least_role: Role,
    /// A flag that must be on.
    pub feature_flag: Option<String>,
    /// All but `workspace_id`.
    pub parameters: Vec<ParameterSpec>,
    /// The body.
    pub body: BodyKind,
    /// Decompressed; 0: the operator's default.
    pub max_body_bytes: u64,
    /// 200 to 299.
    pub success_status: u16,
    /// Schema of the success body.
    pub response: Option<Json>,
    /// Codes beyond the common ones.
    pub problem_codes: Vec<String>,
    /// What a key does.
    pub idempotency: Idempotency,
    /// What it costs.
    pub rate: RateClass,
    /// May it write?
    pub writes: bool,
    /// Milliseconds; 0: the default.
    pub deadline_ms: u32,
}

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A JSON string.
    Text,
    /// A JSON integer.
    Integer,
    /// A JSON boolean.
    Boolean,
}

/// A member that can be filtered, ordered or indexed by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// A top-level member.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
}

/// A database index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Index {
    /// Declared fields, in order.
    pub fields: Vec<String>,
    /// At most one document with these values.
    pub unique: bool,
}

/// A kind of document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Without the area's name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// JSON Schema of the documents.
    pub schema: Json,
    /// What can be asked for.
    pub fields: Vec<Field>,
    /// What is quick.
    pub indexes: Vec<Index>,
    /// Areas that may read; `*`: all.
    pub readers: Vec<String>,
}

/// An event an area publishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventSpec {
    /// Dotted, lower case.
    pub name: String,
    /// One line.
    pub summary: String,
    /// JSON Schema of the data.
    pub schema: Json,
}

/// A kind of job an area runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpec {
    /// snake_case.
    pub name: String,
    /// Where it waits.
    pub lane: Lane,
    /// Before it is dead.
    pub max_attempts: u32,
    /// One attempt.
    pub timeout_ms: u32,
}

/// What an area wants to import.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Documents of the workspace.
    Documents,
    /// Large content.
    Blobs,
    /// Publishing.
    Events,
    /// Work for later.
    Jobs,
    /// Sealed secrets.
    Secrets,
    /// Primitives.
    Crypto,
    /// Members.
    Directory,
    /// Time zones.
    Calendar,
    /// The way out.
    Egress,
    /// Lines for the operator.
    Log,
    /// The malware scanner.
    Malware,
    /// Links that are their own authority.
    Links,
    /// What the operator has set.
    Settings,
    /// The workspace's jobs, of all areas.
    Queue,
    /// Who belongs to the workspace, changed.
    Membership,
    /// Mail to people.
    Mail,
    /// The events of all areas (subscription `*`); no import shows it.
    AllEvents,
}

/// What an area is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// snake_case, unique.
    pub name: String,
    /// Semantic.
    #[schemars(with = "String")]
    pub version: semver::Version,
    /// One line.
    pub summary: String,
    /// Its operations.
    pub routes: Vec<Route>,
    /// Its documents.
    pub collections: Vec<Collection>,
    /// Areas that may read its blobs; `*`: all.
    pub blob_readers: Vec<String>,
    /// Its events.
    pub publishes: Vec<EventSpec>,
    /// Events it is run for; `*`: all.
    pub subscriptions: Vec<String>,
    /// Its jobs.
    pub jobs: Vec<JobSpec>,
    /// Its wishes.
    pub capabilities: Vec<Capability>,
}

impl Manifest {
    /// Everything an operator has to grant it: what it asks to import, and the
    /// events of all areas if it subscribes to them.
    #[must_use]
    pub fn asks(&self) -> BTreeSet<Capability> {
        let mut asks: BTreeSet<_> = self.capabilities.iter().copied().collect();
        if self.subscriptions.iter().any(|event| event == "*") {
            asks.insert(Capability::AllEvents);
        }
        asks
    }

    /// Whether its calls may come upon a secret, or upon what stands for one:
    /// signatures, links and vouchers, and what other services answer.
    #[must_use]
    pub fn meets_secrets(&self) -> bool {
        use Capability::{Egress, Links, Membership, Secrets};
        let met = |one: &Capability| matches!(one, Secrets | Links | Membership | Egress);
        self.capabilities.iter().any(met)
    }
}
