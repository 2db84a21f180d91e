// A tour with openapi-fetch and the types that openapi-typescript makes of
// /openapi.json. Arguments: base URL, e-mail, password, workspace, a SARIF file.

import { readFileSync } from "node:fs";
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const [baseUrl, email, password, workspace_id, sarif] = process.argv.slice(2) as [
  string, string, string, string, string,
];
const client = createClient<paths>({ baseUrl });
const inWorkspace = { params: { path: { workspace_id } } };

function check(held: boolean, what: unknown): asserts held {
  if (!held) throw new Error(JSON.stringify(what));
}

const nobody = await client.GET("/v1/auth/session");
const problem: Schemas["Problem"] | undefined = nobody.error;
check(problem?.code === "unauthenticated", problem);

const signedIn = await client.POST("/v1/auth/login", { body: { email, password } });
const session: Schemas["Session"] | undefined = signedIn.data;
check(session !== undefined, signedIn.error);
const cookies = signedIn.response.headers.getSetCookie().map((cookie) => cookie.split(";")[0]);
const credentials: Middleware = {
  onRequest({ request }) {
    request.headers.set("Cookie", cookies.join("; "));
    request.headers.set("X-CSRF-Token", session.csrf_token);
    return request;
  },
};
client.use(credentials);

const made = await client.POST("/v1/workspaces/{workspace_id}/repositories", {
  ...inWorkspace,
  body: { name: "typescript", provider: "github", default_branch: "main" },
});
const repository: Schemas["Repository"] | undefined = made.data;
check(repository !== undefined, made.error);
check(made.response.headers.get("ETag") === '"1"', "no ETag");

const content = new Uint8Array(readFileSync(sarif));
const announced = await client.POST("/v1/workspaces/{workspace_id}/uploads", {
  ...inWorkspace,
  body: {
    filename: "shop.sarif",
    content_type: "application/json",
    compressed_bytes: content.length,
    repository_id: repository.id,
    purpose: "audit",
  },
});
const upload: Schemas["Upload"] | undefined = announced.data;
check(upload !== undefined && upload.upload_url !== null, announced.error);
const stored = await fetch(upload.upload_url, { method: "PUT", body: content });
check(stored.ok, stored.status);
const ofUpload = { params: { path: { workspace_id, upload_id: upload.id } } };
await client.POST("/v1/workspaces/{workspace_id}/uploads/{upload_id}/complete", ofUpload);
let stage: Schemas["Upload"]["validation_stage"] | undefined;
while (stage !== "ready") {
  check(stage !== "rejected", stage);
  const read = await client.GET("/v1/workspaces/{workspace_id}/uploads/{upload_id}", ofUpload);
  stage = read.data?.validation_stage;
}

const audit = await client.POST("/v1/workspaces/{workspace_id}/audits", {
  ...inWorkspace,
  body: { repository_id: repository.id },
});
check(audit.data !== undefined, audit.error);
const audit_id = audit.data.id;
for (let state: string = audit.data.state; state !== "completed"; ) {
  const read = await client.GET("/v1/workspaces/{workspace_id}/audits/{audit_id}", {
    params: { path: { workspace_id, audit_id } },
  });
  check(read.data !== undefined && read.data.state !== "failed", read);
  state = read.data.state;
}

const rebuilt = await client.POST(
  "/v1/workspaces/{workspace_id}/control-room/rebuild",
  inWorkspace,
);
const snapshot: Schemas["Snapshot"] | undefined = rebuilt.data?.snapshots[0];
check(snapshot !== undefined, rebuilt.error);
const listed = await client.GET("/v1/workspaces/{workspace_id}/dependencies", {
  params: { path: { workspace_id }, query: { limit: 5 } },
});
const dependencies: Schemas["Dependency"][] | undefined = listed.data?.items;
check(dependencies?.length === 0, listed);

const open = (subject: string, key: string) =>
  client.POST("/v1/workspaces/{workspace_id}/support/cases", {
    params: { path: { workspace_id }, header: { "Idempotency-Key": key } },
    body: { subject, description: "Since this morning." },
  });
const refused = await open("", "typescript-tour-0");
check(refused.error?.code === "validation_failed", refused);
const opened = await open("Login fails", "typescript-tour-1");
const supportCase: Schemas["SupportCase"] | undefined = opened.data;
check(supportCase?.status === "open", opened);
console.log("ok");
