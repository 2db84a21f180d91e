// What everybody in a workspace should read first: one announcement, which an
// administrator publishes and every member reads. `announcements.py` is the
// same area in Python.

import documents from "assurance:area/documents@0.3.0";
import log from "assurance:area/log@0.3.0";

// QuickJS has no console. This one writes to the area's log.
const writer = (level) => (...parts) => log.write(level, parts.map(String).join(" "));
globalThis.console = { log: writer("info"), warn: writer("warn"), error: writer("error") };

const COLLECTION = "announcements";
const CURRENT = "current";
const PATH = "/v1/workspaces/{workspace_id}/announcement";

const text = { type: "string", minLength: 1, maxLength: 2000 };
const NEW = { type: "object", properties: { text }, required: ["text"], additionalProperties: false };
const ANNOUNCEMENT = {
  type: "object",
  properties: {
    text,
    author_id: { type: "string", format: "uuid" },
    published_at: { type: "string", format: "date-time" },
  },
  required: ["text", "author_id", "published_at"],
  additionalProperties: false,
};

export function describe() {
  return {
    name: "announcements",
    version: "0.1.0",
    summary: "What everybody in a workspace should read first",
    routes: [
      route("publish_announcement", "put", "admin", "Publish the announcement"),
      route("get_announcement", "get", "viewer", "Read the announcement"),
    ],
    collections: [
      {
        name: COLLECTION,
        summary: "The current announcement",
        schema: JSON.stringify(ANNOUNCEMENT),
        fields: [],
        indexes: [],
        readers: [],
      },
    ],
    blobReaders: [],
    publishes: [],
    subscriptions: [],
    jobs: [],
    capabilities: ["documents", "log"],
  };
}

function route(operationId, method, leastRole, summary) {
  const writes = method === "put";
  return {
    operationId,
    method,
    path: PATH,
    summary,
    description: "",
    inContract: false,
    workspace: { tag: "path" },
    leastRole,
    featureFlag: null,
    parameters: [],
    body: writes ? { tag: "json", val: JSON.stringify(NEW) } : { tag: "none" },
    maxBodyBytes: 0,
    successStatus: 200,
    response: JSON.stringify(ANNOUNCEMENT),
    problemCodes: [],
    idempotency: writes ? "optional" : "none",
    rate: writes ? "standard" : "light",
    writes,
    deadlineMs: 0,
  };
}

export function handle(request) {
  return request.operation === "publish_announcement" ? publish(request) : read();
}

function publish({ actor, body, call }) {
  const announcement = JSON.stringify({
    text: JSON.parse(body.val).text,
    author_id: actor.user,
    published_at: new Date(Number(call.now) / 1000).toISOString(),
  });
  const known = documents.get(COLLECTION, CURRENT);
  const write = known
    ? { tag: "replace", val: [CURRENT, known.version, announcement] }
    : { tag: "create", val: [CURRENT, announcement] };
  const [version] = documents.apply(COLLECTION, [write]);
  return { body: announcement, version, replayed: false };
}

function read() {
  const known = documents.get(COLLECTION, CURRENT);
  if (!known) {
    throw {
      kind: "not-found",
      code: null,
      detail: "Nothing has been announced yet.",
      hint: null,
      violations: [],
    };
  }
  return { body: known.body, version: known.version, replayed: false };
}

export function run() {
  throw { tag: "fail", val: "This area has no jobs." };
}
