-- Sends the requests of a list in turn: wrk ... -- LIST. A line of it is a method, a path and a body, with tabs between
-- them. What wrk measured is printed as JSON.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  requests = {}
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^([^\t]*)\t([^\t]*)\t(.*)$")
    requests[#requests + 1] = wrk.format(method, path, nil, body ~= "" and body or nil)
  end
  listed = #requests
  sent = -1
end

function request()
  sent = sent + 1
  -- The first time wrk only looks at how many requests it gets.
  if sent == 0 then return requests[1] end
  -- To read the list is no part of the load.
  if sent == 1 then startedAt = os.clock() end
  return requests[(sent - 1) % listed + 1]
end

function done(summary, latency)
  local thread = threads[1]
  local errors = summary.errors
  io.write(string.format(
    '{"sent": %d, "requests": %d, "seconds": %f, "refused": %d, "broken": %d, "p50Ms": %f, "p99Ms": %f, "longestMs": %f, "cpuSeconds": %f}\n',
    thread:get("sent"), summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000, os.clock() - thread:get("startedAt")))
end
