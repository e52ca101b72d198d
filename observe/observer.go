package observe

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
)

// Config says whom an [Observer] tells. The zero Config tells nobody.
type Config struct {
	// Traces gets the spans. Nil: there are none.
	Traces trace.TracerProvider

	// Metrics gets the measurements. Nil: there are none.
	Metrics metric.MeterProvider

	// Names puts tenant, skill and script of admitted calls on the metrics of calls
	// too. There may be many: each set of them is a series.
	Names bool
}

// An Observer makes spans and metrics. It is safe for concurrent use.
type Observer struct {
	tracer trace.Tracer
	meter  metric.Meter
	names  bool

	duration, wait, append, requests metric.Float64Histogram
	runs, denials, failures          metric.Int64Counter
	active                           metric.Int64UpDownCounter
}

var _ tracon.Observer = (*Observer)(nil)

// New returns an Observer for c.
//
// # Errors
//
// Those of the meter, for an instrument that it does not make.
func New(c Config) (*Observer, error) {
	if c.Traces == nil {
		c.Traces = tracenoop.NewTracerProvider()
	}
	if c.Metrics == nil {
		c.Metrics = metricnoop.NewMeterProvider()
	}
	o := &Observer{tracer: c.Traces.Tracer(Scope), meter: c.Metrics.Meter(Scope), names: c.Names}
	var errs []error
	histogram := func(name, doc string) metric.Float64Histogram {
		h, err := o.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(doc), metric.WithExplicitBucketBoundaries(seconds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, doc string) metric.Int64Counter {
		n, err := o.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(doc))
		errs = append(errs, err)
		return n
	}
	o.duration = histogram(metricDuration, "Duration of the executor's calls.")
	o.wait = histogram(metricWait, "How long admitted calls waited for a slot.")
	o.append = histogram(metricAppend, "How long it took until an entry stood in the log.")
	o.requests = histogram(metricRequests, "Duration of HTTP requests.")
	o.runs = counter(metricRuns, "{run}", "Calls that were admitted, by what came of them.")
	o.denials = counter(metricDenials, "{call}", "Calls that a gate refused.")
	o.failures = counter(metricFailures, "{entry}", "Entries that could not be written to the log.")
	active, err := o.meter.Int64UpDownCounter(metricActive, metric.WithUnit("{request}"), metric.WithDescription("HTTP requests under way."))
	o.active = active
	return o, errors.Join(append(errs, err)...)
}

// Call implements [tracon.Observer].
func (o *Observer) Call(ctx context.Context, call gate.Call) (context.Context, func(tracon.Observation)) {
	ctx, span := o.tracer.Start(ctx, operation+" "+tool, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		keyOperation.String(operation), keyTool.String(tool), keyToolType.String("function")))
	return ctx, func(seen tracon.Observation) {
		o.span(span, call, seen)
		// The caller may have left; what it measured counts even so.
		o.measure(context.WithoutCancel(ctx), seen)
	}
}

// span completes and ends the span of a call. An executor's own words stand in it,
// for the operator (R26); a gate's do not: they may quote what a stranger sent.
func (o *Observer) span(span trace.Span, call gate.Call, seen tracon.Observation) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	req, out := seen.Request, seen.Outcome
	if gate.CheckTenant(call.Tenant) == nil {
		span.SetAttributes(keyTenant.String(call.Tenant))
	}
	if call.ID != "" {
		short(span, keyCall, call.ID)
	}
	if req.Valid() {
		standing := req.Standing()
		span.SetName(operation + " " + tool + " " + req.Skill() + " " + req.Script())
		span.SetAttributes(keyCall.String(req.ID()), keySkill.String(req.Skill()), keyScript.String(req.Script()), keyGrant.String(req.GrantID()),
			keyScriptHash.String(req.ScriptDigest().String()), keySeq.Int64(int64(req.Receipt().Index())),
			keyExecutor.String(standing.Executor), keyTier.String(string(standing.Tier)))
	} else {
		short(span, keySkill, call.Skill)
		short(span, keyScript, call.Script)
	}
	if n, ok := out.Ending.ExitCode(); ok {
		span.SetAttributes(keyExitCode.Int(n))
	}
	code := tracon.Code(out, seen.Err)
	if code == "" {
		return
	}
	span.SetAttributes(keyError.String(code))
	denial, denied := errors.AsType[*gate.Denial](seen.Err)
	switch {
	case denied && code == string(denial.Gate):
		span.SetAttributes(keyDenied.String(code))
		span.SetStatus(codes.Error, "refused by gate "+code)
	case seen.Err != nil:
		span.SetStatus(codes.Error, bounded(seen.Err.Error(), maxError))
	default:
		span.SetStatus(codes.Error, code)
	}
}

// Bounds of what strangers and executors say.
const (
	maxName  = 256
	maxError = 2048
)

// short sets an attribute that a stranger chose, where it is short enough to be a name.
func short(span trace.Span, key attribute.Key, text string) {
	if text != "" && len(text) <= maxName && utf8.ValidString(text) {
		span.SetAttributes(key.String(text))
	}
}

// bounded cuts text between characters.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

func (o *Observer) measure(ctx context.Context, seen tracon.Observation) {
	code := tracon.Code(seen.Outcome, seen.Err)
	denial, denied := errors.AsType[*gate.Denial](seen.Err)
	if denied && code == string(denial.Gate) {
		o.denials.Add(ctx, 1, metric.WithAttributes(keyGate.String(code)))
	}
	if !seen.Request.Valid() {
		return
	}
	labels := []attribute.KeyValue{keyTool.String(tool)}
	if code != "" {
		labels = append(labels, keyError.String(code))
	}
	if o.names {
		labels = append(labels, keyTenant.String(seen.Request.Tenant()), keySkill.String(seen.Request.Skill()), keyScript.String(seen.Request.Script()))
	}
	set := metric.WithAttributeSet(attribute.NewSet(labels...))
	o.runs.Add(ctx, 1, set)
	o.wait.Record(ctx, seen.Outcome.Waited.Seconds())
	if reachedExecutor(seen) {
		o.duration.Record(ctx, seen.Outcome.Duration.Seconds(), set)
	}
}

// reachedExecutor reports whether an admitted call had its executor called.
func reachedExecutor(seen tracon.Observation) bool {
	return !seen.Outcome.Ending.IsZero() || errors.Is(seen.Err, tracon.ErrExecutorFailed) || seen.Outcome.Duration > 0
}

// Append is told of each write to the log; it is for [audit.Log.Watch].
func (o *Observer) Append(took time.Duration, failed bool) {
	ctx := context.Background()
	o.append.Record(ctx, took.Seconds())
	if failed {
		o.failures.Add(ctx, 1)
	}
}

// State is what a host is asked for each time that somebody collects.
type State struct {
	Stats func() tracon.Stats         // nil: nobody is asked
	Ready func(context.Context) error // nil: nobody is asked
}

// Watch measures the state of a host until stop is called.
func (o *Observer) Watch(s State) (stop func() error, err error) {
	var errs []error
	gauge := func(name, unit, doc string) metric.Int64ObservableGauge {
		g, err := o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(doc))
		errs = append(errs, err)
		return g
	}
	slots := gauge(metricSlots, "{slot}", "Slots that there are.")
	inUse := gauge(metricInUse, "{slot}", "Slots that are held.")
	waiting := gauge(metricWaiting, "{call}", "Admitted calls that wait for a slot.")
	abandoned := gauge(metricAbandoned, "{run}", "Executions that passed their wait limit and are still out.")
	unwritten := gauge(metricUnwritten, "{run}", "Calls whose ending could not be written.")
	ready := gauge(metricReady, "", "1 where calls can run, else 0.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r, err := o.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		if s.Stats != nil {
			n := s.Stats()
			to.ObserveInt64(slots, int64(n.Slots))
			to.ObserveInt64(inUse, int64(n.InUse))
			to.ObserveInt64(waiting, int64(n.Waiting))
			to.ObserveInt64(abandoned, n.Abandoned)
			to.ObserveInt64(unwritten, n.Unwritten)
		}
		if s.Ready != nil {
			var is int64
			if s.Ready(ctx) == nil {
				is = 1
			}
			to.ObserveInt64(ready, is)
		}
		return nil
	}, slots, inUse, waiting, abandoned, unwritten, ready)
	if err != nil {
		return nil, err
	}
	return r.Unregister, nil
}
