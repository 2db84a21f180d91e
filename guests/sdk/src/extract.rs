//! Arguments of handlers after the context, and the parts of a route that they declare.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::context::Ctx;
use crate::manifest;
use crate::problem::Problem;
use crate::schema;
use crate::wit::assurance::area::manifest::{BodyKind, ParameterPlace, Route, WorkspaceSource};
use crate::wit::assurance::area::types::{Body as WitBody, Parameter, Part, ReceivedBlob};

/// Content of a request that is not in the context. Each argument of the handler takes its part.
#[derive(Debug)]
pub struct HandlerInput {
    /// Path template of the request's route.
    pub path: &'static str,
    /// Parameters that the client sent, or that have a default.
    pub parameters: Vec<Parameter>,
    /// Body of the request, of the kind that the route declares.
    pub body: WitBody,
    /// Claims of the signed link, as JSON; `None` if the route takes no signed link.
    pub link: Option<String>,
}

/// A type that can be an argument of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument that a handler can take after `&Ctx`",
    note = "take `Body<T>`, `Params<T>` or `Path<T>`, where `T` has `Deserialize` and `JsonSchema`"
)]
pub trait FromRequest: Sized {
    /// Extracts a handler's argument from the request.
    ///
    /// # Errors
    /// A problem, if the value passes the JSON Schema but the type does not accept it.
    fn from_request(ctx: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem>;
    /// Adds the parameters or the body of this argument to the manifest's route.
    fn describe(route: &mut Route);
}

fn refused(error: &serde_json::Error) -> Problem {
    Problem::validation("", error.to_string())
}

/// Parses a JSON body. If the type does not accept it, the problem has the pointer to the refused
/// value.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let mut reader = serde_json::Deserializer::from_str(text);
        let Err(located) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
            return refused(&error);
        };
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        Problem::validation(pointer(located.path()), message)
    })
}

/// Returns the JSON Pointer (RFC 6901) of a path.
fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Seq { index } => format!("{pointer}/{index}"),
        Segment::Map { key } => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
        // These are no places in the document.
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
}

fn json_body(input: &mut HandlerInput) -> String {
    match std::mem::replace(&mut input.body, WitBody::None) {
        WitBody::Json(text) => text,
        other => panic!("the host gave {other:?} for a JSON body"),
    }
}

/// Argument with the JSON body. Unknown members are refused before the handler runs.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequest for Body<T> {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        parse(&json_body(input)).map(Self)
    }

    fn describe(route: &mut Route) {
        route.body = BodyKind::Json(schema::body::<T>());
    }
}

/// Argument with the JSON body and its text as the client sent it, for content that is signed or
/// hashed.
#[derive(Clone, Debug)]
pub struct Verbatim<T> {
    /// The parsed body.
    pub value: T,
    /// The body's text, exactly as the client sent it.
    pub text: String,
}

impl<T: DeserializeOwned + JsonSchema> FromRequest for Verbatim<T> {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        let text = json_body(input);
        Ok(Self { value: parse(&text)?, text })
    }

    fn describe(route: &mut Route) {
        Body::<T>::describe(route);
    }
}

/// Argument with the parameters in path, query and headers as one struct. A member that the path
/// template names is a path parameter, one marked `#[schemars(extend("x-header" = true))]` a
/// header, any other a query parameter. Bounds, formats and defaults come from the schema.
#[derive(Clone, Copy, Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequest for Params<T> {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        let mut object = String::from("{");
        for parameter in &input.parameters {
            let comma = if object.len() > 1 { "," } else { "" };
            object.push_str(comma);
            object.push_str(&Value::from(parameter.name.as_str()).to_string());
            object.push(':');
            object.push_str(&parameter.value);
        }
        object.push('}');
        serde_json::from_str(&object).map(Self).map_err(|error| refused(&error))
    }

    fn describe(route: &mut Route) {
        manifest::parameters(&schema::parameters::<T>(), route);
    }
}

/// Argument with the only path parameter in addition to `workspace_id`.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequest for Path<T> {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        let given = manifest::path_parameters(input.path)
            .find_map(|name| input.parameters.iter().find(|parameter| parameter.name == name));
        let Some(parameter) = given else { panic!("the host gave no path parameter") };
        serde_json::from_str(&parameter.value)
            .map(Self)
            .map_err(|error| Problem::validation(parameter.name.clone(), error.to_string()))
    }

    fn describe(route: &mut Route) {
        let path = route.path.clone();
        let mut names = manifest::path_parameters(&path);
        let (Some(name), None) = (names.next(), names.next()) else {
            panic!("{}: Path takes one parameter in addition to workspace_id", route.operation_id);
        };
        let schema = schema::parameters::<T>();
        let operation = &route.operation_id;
        let parameter = manifest::parameter(operation, name, ParameterPlace::Path, &schema, true);
        route.parameters.insert(0, parameter);
    }
}

/// Argument with the parts of a `multipart/form-data` body, which the route declares with
/// [`RouteBuilder::part`](crate::RouteBuilder::part).
#[derive(Clone, Debug)]
pub struct Form(pub Vec<Part>);

impl Form {
    /// Returns the part with this name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.0.iter().find(|part| part.name == name)
    }
}

impl FromRequest for Form {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        match std::mem::replace(&mut input.body, WitBody::None) {
            WitBody::Form(parts) => Ok(Self(parts)),
            other => panic!("the host gave {other:?} for a form"),
        }
    }

    fn describe(route: &mut Route) {
        if !matches!(route.body, BodyKind::Multipart(_)) {
            route.body = BodyKind::Multipart(Vec::new());
        }
    }
}

/// Argument with a body of any content, which the host has already written to the blob store.
#[derive(Clone, Debug)]
pub struct Blob(pub ReceivedBlob);

impl FromRequest for Blob {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        match std::mem::replace(&mut input.body, WitBody::None) {
            WitBody::Blob(blob) => Ok(Self(blob)),
            other => panic!("the host gave {other:?} for a blob"),
        }
    }

    fn describe(route: &mut Route) {
        route.body = BodyKind::Blob;
    }
}

/// Argument with the claims of the signed link, as passed to
/// [`Scope::sign_link`](crate::Scope::sign_link).
#[derive(Clone, Copy, Debug)]
pub struct LinkClaims<T>(pub T);

impl<T: DeserializeOwned> FromRequest for LinkClaims<T> {
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        let Some(claims) = input.link.take() else { panic!("the host gave no link") };
        // An earlier version of the area may have signed claims without members that this type
        // requires. Such a link is treated as expired.
        serde_json::from_str(&claims)
            .map(Self)
            .map_err(|_| Problem::permission_denied("The link has expired or is not valid."))
    }

    fn describe(route: &mut Route) {
        assert!(
            matches!(route.workspace, WorkspaceSource::SignedLink(_)),
            "{}: Link is for routes by signed link",
            route.operation_id
        );
    }
}
