-- One load of wrk: the request from the environment, the figures as one line.
local threads = 0
function setup(thread)
  thread:set("thread_id", threads)
  threads = threads + 1
end

local count = 0
local unique = os.getenv("LOAD_UNIQUE")
local headers = {
  ["Cookie"] = os.getenv("LOAD_COOKIE"),
  ["X-CSRF-Token"] = os.getenv("LOAD_CSRF"),
  ["Content-Type"] = os.getenv("LOAD_BODY") and "application/json" or nil,
}

-- The path with each workspace of the file, which take turns.
local paths = {}

function init()
  local file = os.getenv("LOAD_WORKSPACES")
  if not file then return end
  for workspace in io.lines(file) do
    paths[#paths + 1] = wrk.path:gsub("/workspaces/[^/]+", "/workspaces/" .. workspace)
  end
end

function request()
  if unique then
    count = count + 1
    headers["Idempotency-Key"] = unique .. "-" .. thread_id .. "-" .. count
  end
  local path = #paths > 0 and paths[count % #paths + 1] or nil
  return wrk.format(os.getenv("LOAD_METHOD"), path, headers, os.getenv("LOAD_BODY"))
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"duration_us":%d,"errors":%d,"p50_us":%d,"p99_us":%d,"max_us":%d}\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
end
