//! The parameters `limit` and `cursor` of every operation that returns pages.

use serde::de::DeserializeOwned;

use crate::context::Ctx;
use crate::extract::{FromRequest, HandlerInput};
use crate::problem::Problem;
use crate::wit::assurance::area::manifest::{
    IntegerBounds, Parameter, ParameterPlace, ParameterType, Route, TextBounds,
};

/// Argument with the requested page. Declares the query parameters `limit` and `cursor`. Pass it to
/// [`Query::paging`](crate::Query::paging).
///
/// `LIMIT` is the default of `limit`, `MAX_LIMIT` its maximum. `MAX_CURSOR` is the maximum length
/// of a cursor in characters: a list ordered by long texts has long cursors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging<const LIMIT: u32 = 50, const MAX_LIMIT: u32 = 100, const MAX_CURSOR: u32 = 2000> {
    /// Maximum number of items of the page.
    pub limit: u32,
    /// `next_cursor` of the previous page; `None` for the first page.
    pub cursor: Option<String>,
}

impl<const LIMIT: u32, const MAX_LIMIT: u32, const MAX_CURSOR: u32> FromRequest
    for Paging<LIMIT, MAX_LIMIT, MAX_CURSOR>
{
    fn from_request(_: &Ctx, input: &mut HandlerInput) -> Result<Self, Problem> {
        Ok(Self { limit: read(input, "limit")?.unwrap_or(LIMIT), cursor: read(input, "cursor")? })
    }

    fn describe(route: &mut Route) {
        let limits = IntegerBounds { minimum: 1, maximum: MAX_LIMIT.into() };
        route.parameters.push(Parameter {
            name: "limit".to_owned(),
            place: ParameterPlace::Query,
            summary: "Most items of a page.".to_owned(),
            kind: ParameterType::Integer(limits),
            required: false,
            default: Some(LIMIT.to_string()),
        });
        route.parameters.push(Parameter {
            name: "cursor".to_owned(),
            place: ParameterPlace::Query,
            summary: "`next_cursor` of the previous page, with the same filters.".to_owned(),
            kind: ParameterType::Text(TextBounds { min_length: 0, max_length: MAX_CURSOR }),
            required: false,
            default: None,
        });
    }
}

fn read<T: DeserializeOwned>(input: &HandlerInput, name: &str) -> Result<Option<T>, Problem> {
    let given = input.parameters.iter().find(|parameter| parameter.name == name);
    let read = given.map(|parameter| serde_json::from_str(&parameter.value));
    read.transpose().map_err(|error| Problem::validation(name, error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{FakeHost, Request};
    use crate::{Area, Result, get};

    type SmallPaging = Paging<20, 50, 300>;

    fn area() -> Area {
        let list = |_: &Ctx, page: SmallPaging| {
            Ok(vec![page.limit.to_string(), format!("{:?}", page.cursor)])
        };
        let list: fn(&Ctx, SmallPaging) -> Result<Vec<String>> = list;
        Area::new("lists", "1.0.0").route(get("list", "/v1/lists/{workspace_id}").handler(list))
    }

    #[test]
    fn the_bounds_are_in_the_manifest() {
        let parameters = area().manifest().routes.remove(0).parameters;
        let [limit, cursor] = parameters.as_slice() else { panic!("{parameters:?}") };
        let bounds = IntegerBounds { minimum: 1, maximum: 50 };
        assert!(matches!(limit.kind, ParameterType::Integer(own) if own == bounds));
        assert_eq!((limit.required, limit.default.as_deref()), (false, Some("20")));
        assert!(matches!(&cursor.kind, ParameterType::Text(kind) if kind.max_length == 300));
        assert_eq!((cursor.required, cursor.default.as_deref()), (false, None));
    }

    #[test]
    fn a_page_is_read_with_and_without_parameters() {
        let host = FakeHost::new(area());
        let none = host.call(Request::to("list")).expect("a page").body;
        assert_eq!(none, json!(["20", "None"]));
        let both = Request::to("list").with("limit", 7).with("cursor", "a\"b");
        let both = host.call(both).expect("a page").body;
        assert_eq!(both, json!(["7", "Some(\"a\\\"b\")"]));
        let wrong = host.call(Request::to("list").with("limit", "many")).expect_err("no number");
        assert_eq!(wrong.violations[0].pointer, "limit");
    }
}
