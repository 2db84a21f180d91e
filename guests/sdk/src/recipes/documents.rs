//! Documents: create, list in pages, change with `If-Match`.
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Service {
//!     name: String,
//!     owner_id: Option<Uuid>,
//! }
//!
//! document!(Service, "services");
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct NewService {
//!     #[schemars(length(min = 1, max = 200))]
//!     name: String,
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct ServiceChanges {
//!     #[serde(default)]
//!     owner_id: Patch<Uuid>,
//! }
//!
//! fn create(ctx: &Ctx, Body(new): Body<NewService>) -> Result<Created<Versioned<Service>>> {
//!     let service = Service { name: new.name, owner_id: None };
//!     let service = ctx.documents().create_stored(ctx.new_id(), service)?;
//!     Ok(Created(service.versioned(|service| service.value)))
//! }
//!
//! fn list(ctx: &Ctx, paging: Paging) -> Result<Page<Service>> {
//!     let services = ctx.documents::<Service>().query().ascending("name");
//!     Ok(services.paging(paging).page()?.map(|service| service.value))
//! }
//!
//! fn update(
//!     ctx: &Ctx,
//!     Path(id): Path<Uuid>,
//!     Body(changes): Body<ServiceChanges>,
//! ) -> Result<Versioned<Service>> {
//!     let mut service = ctx.documents::<Service>().get(id)?; // 404 without it
//!     ctx.check_if_match(service.version)?; // 409 if it has changed
//!     changes.owner_id.apply(&mut service.owner_id);
//!     ctx.documents().replace(&mut service)?;
//!     Ok(service.versioned(|service| service.value))
//! }
//!
//! fn area() -> Area {
//!     const SERVICES: &str = "/v1/workspaces/{workspace_id}/services";
//!     const SERVICE: &str = "/v1/workspaces/{workspace_id}/services/{service_id}";
//!     Area::new("services", "1.0.0")
//!         .collection(Collection::of::<Service>().unique(&["name"]))
//!         .route(post("create_service", SERVICES).handler(create))
//!         .route(get("list_services", SERVICES).handler(list))
//!         .route(patch("update_service", SERVICE).handler(update))
//! }
//!
//! let host = FakeHost::new(area());
//! host.call(Request::to("create_service").json(json!({"name": "api"}))).unwrap();
//! let twice = host.call(Request::to("create_service").json(json!({"name": "api"})));
//! assert!(twice.unwrap_err().detail.contains("same name"));
//! let page = host.call(Request::to("list_services").with("limit", 10)).unwrap().body;
//! assert_eq!(page["items"], json!([{"name": "api", "owner_id": null}]));
//! ```
//!
//! # Add a member to a stored document
//!
//! Documents of the former version stay as they are. A member that they lack
//! must have a default: an `Option` is `None`, anything else needs
//! `#[serde(default)]`. Without it, reading an old document panics.
//! `assurance area check --live` refuses a new required member, because it
//! compares the schema of the stored type with the live one. A native test
//! shows the same by a document of the former version:
//!
//! ```
//! use area_sdk::prelude::*;
//! use area_sdk::testing::{FakeHost, Request};
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Service {
//!     name: String,
//!     /// Since version 2; `None` in older documents.
//!     owner_id: Option<Uuid>,
//!     /// Since version 2; empty in older documents.
//!     #[serde(default)]
//!     tags: Vec<String>,
//!     /// Since version 2; older documents are in the first tier.
//!     #[serde(default = "first_tier")]
//!     tier: u8,
//! }
//!
//! fn first_tier() -> u8 {
//!     1
//! }
//!
//! document!(Service, "services");
//!
//! fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Service> {
//!     Ok(ctx.documents::<Service>().get(id)?.value)
//! }
//!
//! let path = "/v1/workspaces/{workspace_id}/services/{service_id}";
//! let area = Area::new("services", "2.0.0")
//!     .collection(Collection::of::<Service>())
//!     .route(get("get_service", path).handler(show));
//! let host = FakeHost::new(area);
//! let id = Uuid::nil().to_string();
//! host.put_document("services", &id, json!({"name": "api"})); // as version 1 wrote it
//! let shown = host.call(Request::to("get_service").with("service_id", id)).unwrap().body;
//! assert_eq!(shown, json!({"name": "api", "owner_id": null, "tags": [], "tier": 1}));
//! ```
//!
//! A member that must be there for new documents and has no sensible default
//! stays an `Option` in the stored type and is required in the request's type.
//! To remove a member, first deploy a version that does not read it.
