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

function request()
  if unique then
    count = count + 1
    headers["Idempotency-Key"] = unique .. "-" .. thread_id .. "-" .. count
  end
  return wrk.format(os.getenv("LOAD_METHOD"), nil, headers, os.getenv("LOAD_BODY"))
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"duration_us":%d,"errors":%d,"p50_us":%d,"p99_us":%d,"max_us":%d}\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
end
