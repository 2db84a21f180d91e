//! Routes: what an operation is called, where it is, who may call it, and the
//! function that answers it.

use std::fmt;

use serde_json::{Value, json};

use crate::context::Ctx;
use crate::extract::{FromRequest, Input};
use crate::problem::Problem;
use crate::reply::IntoReply;
use crate::schema;
use crate::wit::assurance::area::manifest::{
    self as wit, BodyKind, FormPart, Idempotency, LinkHolder, Method, RateClass, WorkspaceSource,
};
use crate::wit::assurance::area::types::{Reply, Role};

/// A function that answers an operation: the context first, then up to four
/// arguments taken from the request, and what comes back.
pub trait Handler<Arguments>: 'static {
    /// Answers.
    ///
    /// # Errors
    /// The refusal the client will read.
    fn call(&self, ctx: &Ctx, input: Input) -> Result<Reply, Problem>;
    /// Writes into the manifest's route what arguments and reply say of it.
    fn describe(route: &mut wit::Route);
}

macro_rules! handler {
    ($($argument:ident),*) => {
        impl<F, R, $($argument),*> Handler<($($argument,)*)> for F
        where
            F: Fn(&Ctx, $($argument),*) -> Result<R, Problem> + 'static,
            R: IntoReply,
            $($argument: FromRequest,)*
        {
            #[allow(unused_mut, unused_variables, non_snake_case, reason = "none to four of them")]
            fn call(&self, ctx: &Ctx, mut input: Input) -> Result<Reply, Problem> {
                $(let $argument = $argument::from_request(ctx, &mut input)?;)*
                self(ctx, $($argument),*).map(R::into_reply)
            }

            fn describe(route: &mut wit::Route) {
                R::describe(route);
                $($argument::describe(route);)*
            }
        }
    };
}

handler!();
handler!(A);
handler!(A, B);
handler!(A, B, C);
handler!(A, B, C, D);

/// An operation, ready to be listed by its area.
pub struct Route {
    pub(crate) facts: RouteBuilder,
    pub(crate) describe: fn(&mut wit::Route),
    pub(crate) call: Call,
}

type Call = Box<dyn Fn(&Ctx, Input) -> Result<Reply, Problem>>;

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.fmt(f)
    }
}

/// An operation that still wants its handler.
#[derive(Clone, Debug)]
#[must_use]
pub struct RouteBuilder {
    pub(crate) operation: &'static str,
    method: Method,
    pub(crate) path: &'static str,
    summary: &'static str,
    description: &'static str,
    in_contract: bool,
    workspace: Workspace,
    least_role: Role,
    feature_flag: Option<&'static str>,
    max_body_bytes: u64,
    problem_codes: &'static [&'static str],
    parts: Vec<Part>,
    idempotency: Idempotency,
    rate: RateClass,
    writes: bool,
    deadline_ms: u32,
    example: Option<&'static str>,
}

/// Where the workspace comes from.
#[derive(Clone, Copy, Debug)]
enum Workspace {
    Path,
    BodyMember(&'static str),
    Link(&'static str, LinkHolder),
}

#[derive(Clone, Copy, Debug)]
struct Part {
    name: &'static str,
    summary: &'static str,
    required: bool,
    file: bool,
    max_bytes: u64,
}

fn route(method: Method, operation: &'static str, path: &'static str) -> RouteBuilder {
    let reads = method == Method::Get;
    RouteBuilder {
        operation,
        method,
        path,
        summary: "",
        description: "",
        in_contract: false,
        workspace: Workspace::Path,
        least_role: if reads { Role::Viewer } else { Role::Member },
        feature_flag: None,
        max_body_bytes: 0,
        problem_codes: &[],
        parts: Vec::new(),
        idempotency: if method == Method::Post { Idempotency::Optional } else { Idempotency::None },
        rate: if reads { RateClass::Light } else { RateClass::Standard },
        writes: !reads,
        deadline_ms: 0,
        example: None,
    }
}

/// Reads; every member of the workspace may, and nothing is written.
pub fn get(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Get, operation, path)
}

/// Creates or acts; members and above may, `Idempotency-Key` is honoured.
pub fn post(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Post, operation, path)
}

/// Replaces, or sends content; members and above may.
pub fn put(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Put, operation, path)
}

/// Changes; members and above may.
pub fn patch(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Patch, operation, path)
}

/// Removes; members and above may.
pub fn delete(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Delete, operation, path)
}

impl RouteBuilder {
    /// One line for the documentation.
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// The rules a client should know.
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// One of the 22 operations of the published contract.
    pub fn in_contract(mut self) -> Self {
        self.in_contract = true;
        self
    }

    /// The workspace is named by a member of the body, not by the path.
    pub fn workspace_in_body(mut self, member: &'static str) -> Self {
        self.workspace = Workspace::BodyMember(member);
        self
    }

    /// The workspace is named by a link that this area had signed, in this
    /// query parameter; a [`Link`](crate::Link) argument takes its claims.
    pub fn signed_link(mut self, parameter: &'static str, holder: LinkHolder) -> Self {
        self.workspace = Workspace::Link(parameter, holder);
        self
    }

    /// Writes though it is a `get`: where a browser comes back from elsewhere
    /// by a signed link of its own session.
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// The least role that may call it.
    pub fn role(mut self, role: Role) -> Self {
        self.least_role = role;
        self
    }

    /// The workspace's feature flag that must be on.
    pub fn feature_flag(mut self, flag: &'static str) -> Self {
        self.feature_flag = Some(flag);
        self
    }

    /// Largest body, decompressed.
    pub fn max_body_bytes(mut self, bytes: u64) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Codes this operation may answer with beyond the common ones.
    pub fn problems(mut self, codes: &'static [&'static str]) -> Self {
        self.problem_codes = codes;
        self
    }

    /// A text field of a multipart body.
    pub fn part(self, name: &'static str, summary: &'static str, max_bytes: u64) -> Self {
        self.add(Part { name, summary, required: true, file: false, max_bytes })
    }

    /// A file of a multipart body.
    pub fn file(self, name: &'static str, summary: &'static str, max_bytes: u64) -> Self {
        self.add(Part { name, summary, required: true, file: true, max_bytes })
    }

    fn add(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// A request without an `Idempotency-Key` is refused.
    pub fn idempotency_required(mut self) -> Self {
        self.idempotency = Idempotency::Required;
        self
    }

    /// A key is required and handed to the handler, which keeps the record.
    pub fn idempotency_kept_by_area(mut self) -> Self {
        self.idempotency = Idempotency::KeptByArea;
        self
    }

    /// How the rate limiter weighs it.
    pub fn rate(mut self, rate: RateClass) -> Self {
        self.rate = rate;
        self
    }

    /// Wall-clock limit, where the default second is too short.
    pub fn deadline_ms(mut self, deadline_ms: u32) -> Self {
        self.deadline_ms = deadline_ms;
        self
    }

    /// A recorded call for the documentation: JSON with the members `request`
    /// (the body, if it is JSON) and `response`.
    pub fn example(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }

    /// The function that answers it.
    pub fn handler<Arguments, H: Handler<Arguments>>(self, handler: H) -> Route {
        Route {
            facts: self,
            describe: H::describe,
            call: Box::new(move |ctx, input| handler.call(ctx, input)),
        }
    }

    fn workspace(&self) -> WorkspaceSource {
        match self.workspace {
            Workspace::Path => WorkspaceSource::Path,
            Workspace::BodyMember(member) => WorkspaceSource::BodyMember(member.to_owned()),
            Workspace::Link(parameter, holder) => {
                WorkspaceSource::SignedLink(wit::Link { parameter: parameter.to_owned(), holder })
            }
        }
    }

    fn to_wit(&self) -> wit::Route {
        wit::Route {
            operation_id: self.operation.to_owned(),
            method: self.method,
            path: self.path.to_owned(),
            summary: self.summary.to_owned(),
            description: self.description.to_owned(),
            in_contract: self.in_contract,
            workspace: self.workspace(),
            least_role: self.least_role,
            feature_flag: self.feature_flag.map(ToOwned::to_owned),
            parameters: Vec::new(),
            body: BodyKind::None,
            max_body_bytes: self.max_body_bytes,
            success_status: 200,
            response: None,
            problem_codes: self.problem_codes.iter().map(|&code| code.to_owned()).collect(),
            idempotency: self.idempotency,
            rate: self.rate,
            writes: self.writes,
            deadline_ms: self.deadline_ms,
        }
    }
}

/// Adds a recorded call to the schemas of the route.
fn add_example(route: &mut wit::Route, example: &str) {
    let example: Value = serde_json::from_str(example)
        .unwrap_or_else(|error| panic!("{}: the example: {error}", route.operation_id));
    let with = |schema: &str, value: &Value| schema::with(schema, "examples", json!([value]));
    if let (BodyKind::Json(schema), Some(request)) = (&mut route.body, example.get("request")) {
        *schema = with(schema, request);
    }
    if let (Some(schema), Some(response)) = (&mut route.response, example.get("response")) {
        *schema = with(schema, response);
    }
}

impl Route {
    /// The route as the host reads it.
    pub(crate) fn manifest(&self) -> wit::Route {
        let mut route = self.facts.to_wit();
        (self.describe)(&mut route);
        if let BodyKind::Multipart(parts) = &mut route.body {
            parts.extend(self.facts.parts.iter().map(|part| FormPart {
                name: part.name.to_owned(),
                summary: part.summary.to_owned(),
                required: part.required,
                file: part.file,
                max_bytes: part.max_bytes,
            }));
        }
        if let Some(example) = self.facts.example {
            add_example(&mut route, example);
        }
        for name in crate::manifest::path_parameters(self.facts.path) {
            let known = route.parameters.iter().any(|parameter| parameter.name == name);
            assert!(known, "{}: no argument takes {{{name}}}", self.facts.operation);
        }
        route
    }
}
