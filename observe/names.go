package observe

import "go.opentelemetry.io/otel/attribute"

// Scope is the name of the tracer and of the meter.
const Scope = "github.com/tracon-go/tracon/observe"

// operation and tool are what every span of a call begins with.
const (
	operation = "execute_tool"
	tool      = "run_skill_script"
)

// Attributes of a call. Those that begin with gen_ai are of OpenTelemetry's
// conventions for generative models, which are not stable yet.
const (
	keyOperation  = attribute.Key("gen_ai.operation.name")
	keyTool       = attribute.Key("gen_ai.tool.name")
	keyToolType   = attribute.Key("gen_ai.tool.type")
	keyCall       = attribute.Key("gen_ai.tool.call.id")
	keySkill      = attribute.Key("gen_ai.skill.name")
	keyScript     = attribute.Key("gen_ai.skill.resource.name")
	keyExitCode   = attribute.Key("process.exit.code")
	keyError      = attribute.Key("error.type")
	keyTenant     = attribute.Key("tracon.tenant.id")
	keyGrant      = attribute.Key("tracon.grant.id")
	keyScriptHash = attribute.Key("tracon.script.sha256")
	keySeq        = attribute.Key("tracon.audit.seq")
	keyDenied     = attribute.Key("tracon.gate.denied")
	keyExecutor   = attribute.Key("tracon.executor")
	keyTier       = attribute.Key("tracon.tier")
	keyGate       = attribute.Key("gate") // of metricDenials
	keyMethod     = attribute.Key("http.request.method")
	keyRoute      = attribute.Key("http.route")
	keyStatus     = attribute.Key("http.response.status_code")
)

// The metrics.
const (
	metricDuration  = "gen_ai.execute_tool.duration"
	metricRuns      = "tracon.runs"
	metricDenials   = "tracon.denials"
	metricSlots     = "tracon.slots"
	metricInUse     = "tracon.slots.in_use"
	metricWaiting   = "tracon.slots.waiting"
	metricWait      = "tracon.slots.wait"
	metricAbandoned = "tracon.executions.abandoned"
	metricUnwritten = "tracon.endings.unwritten"
	metricAppend    = "tracon.audit.append"
	metricFailures  = "tracon.audit.failures"
	metricReady     = "tracon.ready"
	metricRequests  = "http.server.request.duration"
	metricActive    = "http.server.active_requests"
)

// seconds are the bounds of what takes from a millisecond to some minutes.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
