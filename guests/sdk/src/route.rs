//! Declares routes: operation id, method, path, access rules and handler of each operation.

use std::fmt;

use serde_json::{Value, json};

use crate::context::Ctx;
use crate::extract::{FromRequest, HandlerInput};
use crate::problem::Problem;
use crate::reply::IntoReply;
use crate::schema;
use crate::wit::assurance::area::manifest::{
    self as wit, BodyKind, FormPart, Idempotency, LinkHolder, Method, RateClass, WorkspaceSource,
};
use crate::wit::assurance::area::types::{Reply, Role};

/// A function that executes an operation. Its arguments are the context and up to four extractors;
/// it returns a reply or a problem.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of an operation",
    note = "a handler takes `&Ctx`, then up to four extractors, and returns `Result<R, Problem>`",
    note = "take `Body<T>`, `Path<T>` or `Paging`, and all other parameters as one `Params<T>`",
    note = "derive `Serialize` and `JsonSchema` for `R`, or return `Page<T>` or `NoContent`"
)]
pub trait Handler<Arguments>: 'static {
    /// Executes the operation for one request.
    ///
    /// # Errors
    /// The problem that the client receives.
    fn call(&self, ctx: &Ctx, input: HandlerInput) -> Result<Reply, Problem>;
    /// Adds the parameters, body and response of this handler to the manifest's route.
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
            fn call(&self, ctx: &Ctx, mut input: HandlerInput) -> Result<Reply, Problem> {
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

/// An operation with its handler, to pass to [`Area::route`](crate::Area::route).
pub struct Route {
    pub(crate) facts: RouteBuilder,
    pub(crate) describe: fn(&mut wit::Route),
    pub(crate) call: BoxedHandler,
}

type BoxedHandler = Box<dyn Fn(&Ctx, HandlerInput) -> Result<Reply, Problem>>;

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.fmt(f)
    }
}

/// An operation without its handler. [`handler`](Self::handler) completes it.
#[derive(Clone, Debug)]
#[must_use]
pub struct RouteBuilder {
    pub(crate) operation: &'static str,
    method: Method,
    pub(crate) path: &'static str,
    summary: &'static str,
    description: &'static str,
    in_contract: bool,
    workspace: WorkspaceSource,
    least_role: Role,
    feature_flag: Option<&'static str>,
    max_body_bytes: u64,
    problem_codes: &'static [&'static str],
    parts: Vec<FormPart>,
    idempotency: Idempotency,
    rate: RateClass,
    writes: bool,
    deadline_ms: u32,
    if_match: bool,
    example: Option<&'static str>,
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
        workspace: WorkspaceSource::Path,
        least_role: if reads { Role::Viewer } else { Role::Member },
        feature_flag: None,
        max_body_bytes: 0,
        problem_codes: &[],
        parts: Vec::new(),
        idempotency: if method == Method::Post { Idempotency::Optional } else { Idempotency::None },
        rate: if reads { RateClass::Light } else { RateClass::Standard },
        writes: !reads,
        deadline_ms: 0,
        if_match: false,
        example: None,
    }
}

/// Declares a `GET` route. It is read-only, and every member of the workspace may call it (role
/// viewer).
pub fn get(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Get, operation, path)
}

/// Declares a `POST` route. The minimum role is member, and clients may send `Idempotency-Key`.
pub fn post(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Post, operation, path)
}

/// Declares a `PUT` route. The minimum role is member.
pub fn put(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Put, operation, path)
}

/// Declares a `PATCH` route. The minimum role is member.
pub fn patch(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Patch, operation, path)
}

/// Declares a `DELETE` route. The minimum role is member.
pub fn delete(operation: &'static str, path: &'static str) -> RouteBuilder {
    route(Method::Delete, operation, path)
}

impl RouteBuilder {
    /// Sets the operation's summary in the documentation, one line.
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Sets the description in the documentation: the rules of the operation for clients.
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Marks the operation as one of the 22 of the published contract.
    pub fn in_contract(mut self) -> Self {
        self.in_contract = true;
        self
    }

    /// Takes the workspace id from this member of the JSON body instead of the path.
    pub fn workspace_in_body(mut self, member: &'static str) -> Self {
        self.workspace = WorkspaceSource::BodyMember(member.to_owned());
        self
    }

    /// Takes the workspace from a link that this area signed. `parameter` is the query parameter
    /// with the token; a [`LinkClaims`](crate::LinkClaims) argument receives the claims.
    pub fn signed_link(mut self, parameter: &'static str, holder: LinkHolder) -> Self {
        let parameter = parameter.to_owned();
        self.workspace = WorkspaceSource::SignedLink(wit::Link { parameter, holder });
        self
    }

    /// Allows a `get` to write. Only for a link that is bound to the caller's session, for example
    /// a browser's return from another site.
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Sets the minimum role of callers of the operation.
    pub fn role(mut self, role: Role) -> Self {
        self.least_role = role;
        self
    }

    /// Sets the feature flag that must be on in the workspace for requests to the operation.
    pub fn feature_flag(mut self, flag: &'static str) -> Self {
        self.feature_flag = Some(flag);
        self
    }

    /// Sets the maximum size of the decompressed request body, in bytes.
    pub fn max_body_bytes(mut self, bytes: u64) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Sets the problem codes of this operation in addition to the common ones.
    pub fn problems(mut self, codes: &'static [&'static str]) -> Self {
        self.problem_codes = codes;
        self
    }

    /// Adds a required text field to the multipart body, with its maximum size in bytes.
    pub fn part(self, name: &'static str, summary: &'static str, max_bytes: u64) -> Self {
        self.add(name, summary, false, max_bytes)
    }

    /// Adds a required file to the multipart body, with its maximum size in bytes.
    pub fn file(self, name: &'static str, summary: &'static str, max_bytes: u64) -> Self {
        self.add(name, summary, true, max_bytes)
    }

    fn add(mut self, name: &str, summary: &str, file: bool, max_bytes: u64) -> Self {
        let (name, summary) = (name.to_owned(), summary.to_owned());
        self.parts.push(FormPart { name, summary, required: true, file, max_bytes });
        self
    }

    /// Refuses requests without an `Idempotency-Key`.
    pub fn idempotency_required(mut self) -> Self {
        self.idempotency = Idempotency::Required;
        self
    }

    /// Requires an `Idempotency-Key` and passes it to the handler, which keeps the idempotency
    /// record itself.
    pub fn idempotency_kept_by_area(mut self) -> Self {
        self.idempotency = Idempotency::KeptByArea;
        self
    }

    /// Sets the cost of a request for the rate limiter.
    pub fn rate(mut self, rate: RateClass) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the deadline in milliseconds of wall-clock time; the default is 1000.
    pub fn deadline_ms(mut self, deadline_ms: u32) -> Self {
        self.deadline_ms = deadline_ms;
        self
    }

    /// Lists `If-Match` in the documentation of a `post` whose handler calls
    /// [`Ctx::check_if_match`] and returns a body. Routes of the other methods that write list it
    /// without this call.
    pub fn if_match(mut self) -> Self {
        self.if_match = true;
        self
    }

    /// Sets an example for the documentation: JSON with the members `request` (the body, if it is
    /// JSON) and `response`.
    pub fn example(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }

    /// Sets the function that executes the operation.
    pub fn handler<Arguments, H: Handler<Arguments>>(self, handler: H) -> Route {
        Route {
            facts: self,
            describe: H::describe,
            call: Box::new(move |ctx, input| handler.call(ctx, input)),
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
            workspace: self.workspace.clone(),
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

/// Adds an example to the request and response schemas of the route.
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
    /// Builds the route for the manifest.
    pub(crate) fn manifest(&self) -> wit::Route {
        let mut route = self.facts.to_wit();
        (self.describe)(&mut route);
        if let BodyKind::Multipart(parts) = &mut route.body {
            parts.extend_from_slice(&self.facts.parts);
        }
        if self.facts.if_match {
            let Some(response) = route.response.take() else {
                panic!("{}: if_match needs a handler that returns a body", self.facts.operation)
            };
            route.response = Some(schema::with(&response, "x-if-match", true.into()));
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
