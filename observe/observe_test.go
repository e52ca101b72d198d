package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/observe"
)

// witness is whom an Observer tells.
type witness struct {
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	*observe.Observer
}

func newWitness(t *testing.T, names bool) witness {
	t.Helper()
	w := witness{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	t.Cleanup(func() {
		_ = traces.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	o, err := observe.New(observe.Config{Traces: traces, Metrics: meters, Names: names})
	if err != nil {
		t.Fatal(err)
	}
	w.Observer = o
	return w
}

// metrics returns what was measured: each metric with its labels, and its value
// or how many were recorded.
func (w witness) metrics(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	add := func(name string, set attribute.Set, n int64) {
		var labels []string
		for _, kv := range set.ToSlice() {
			labels = append(labels, string(kv.Key)+"="+kv.Value.String())
		}
		slices.Sort(labels)
		found[name+"{"+strings.Join(labels, ",")+"}"] = n
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, int64(p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			default:
				t.Fatalf("%s has data of type %T", m.Name, data)
			}
		}
	}
	return found
}

// told is everything that spans and metrics say, as text.
func (w witness) told(t *testing.T) string {
	var b strings.Builder
	for _, s := range w.spans.Ended() {
		fmt.Fprintln(&b, s.Name(), s.Status(), s.Attributes(), s.Events())
	}
	fmt.Fprintln(&b, w.metrics(t))
	return b.String()
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

// answering is an executor that answers with what it has.
type answering struct {
	gatecase *gatecase.House
	result   executor.Result
	err      error
}

func (a answering) Execute(context.Context, executor.Request) (executor.Result, error) {
	return a.result, a.err
}

func (a answering) Posture(context.Context) (executor.Posture, error) {
	s := a.gatecase.Standing
	return executor.Posture{Executor: s.Executor, Tier: s.Tier, Claimed: s.Claimed}, nil
}

// run has one call observed.
func run(t *testing.T, w witness, h *gatecase.House, e answering) (tracon.Outcome, error) {
	t.Helper()
	e.gatecase = h
	var logged strings.Builder
	h.Log.Watch(w.Append)
	r, err := tracon.New(tracon.Config{Gate: gate.New(h.Config), Executor: e, Calls: h.Store, Observer: w,
		Logger: slog.New(slog.NewJSONHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Run(t.Context(), h.Call)
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if strings.Contains(logged.String(), gatecase.Canary) {
		t.Errorf("the log holds what it must not: %s", logged.String())
	}
	return out, err
}

// R25: a run that was admitted has a span with the names of the conventions and of
// ours, and its metrics.
func TestSpanOfARun(t *testing.T) {
	w, h := newWitness(t, false), gatecase.New(t)
	out, err := run(t, w, h, answering{result: executor.Result{Ending: executor.Exited(3), Stdout: []byte(gatecase.Canary)}})
	if err != nil {
		t.Fatal(err)
	}
	ended := w.spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans, want one", len(ended))
	}
	s, got := ended[0], attributes(ended[0])
	if want := "execute_tool run_skill_script unit-converter scripts/run.py"; s.Name() != want || s.SpanKind() != trace.SpanKindInternal {
		t.Errorf("the span is %q of kind %v, want %q, internal", s.Name(), s.SpanKind(), want)
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "run_skill_script", "gen_ai.tool.type": "function",
		"gen_ai.tool.call.id": out.ID, "gen_ai.skill.name": gatecase.Skill, "gen_ai.skill.resource.name": "scripts/run.py",
		"process.exit.code": "3", "tracon.tenant.id": gatecase.Tenant, "tracon.grant.id": out.GrantID,
		"tracon.audit.seq": fmt.Sprint(out.Receipt.Index()), "tracon.executor": "counting", "tracon.tier": "process",
	} {
		if got[key] != want {
			t.Errorf("%s = %q, want %q", key, got[key], want)
		}
	}
	if d, err := bundle.ParseDigest(got["tracon.script.sha256"]); err != nil || d.IsZero() {
		t.Errorf("tracon.script.sha256 = %q: %v", got["tracon.script.sha256"], err)
	}
	if _, ok := got["error.type"]; ok { // R27: an exit code is no failure
		t.Errorf("error.type = %q for a script that ran to its end", got["error.type"])
	}
	m := w.metrics(t)
	for _, want := range []string{"gen_ai.execute_tool.duration{gen_ai.tool.name=run_skill_script}", "tracon.runs{gen_ai.tool.name=run_skill_script}", "tracon.slots.wait{}"} {
		if m[want] != 1 {
			t.Errorf("%s = %d, want 1; there is %v", want, m[want], m)
		}
	}
	if m["tracon.audit.append{}"] != 2 { // admission and ending
		t.Errorf("tracon.audit.append has %d, want 2", m["tracon.audit.append{}"])
	}
	if strings.Contains(w.told(t), gatecase.Canary) {
		t.Error("spans or metrics hold what the script wrote")
	}
}

// R26: what an executor says stands on the span, for the operator; the type of the
// error is one of the closed set.
func TestSpanOfAFailure(t *testing.T) {
	w, h := newWitness(t, false), gatecase.New(t)
	if _, err := run(t, w, h, answering{err: errors.New("the machine said no")}); err == nil {
		t.Fatal("no error")
	}
	s := w.spans.Ended()[0]
	if got := attributes(s)["error.type"]; got != "executor_failed" || !strings.Contains(s.Status().Description, "the machine said no") {
		t.Errorf("error.type %q, status %v", got, s.Status())
	}
	if m := w.metrics(t); m["tracon.runs{error.type=executor_failed,gen_ai.tool.name=run_skill_script}"] != 1 {
		t.Errorf("metrics %v", m)
	}
}

// B8, B10: each refusal counts for its gate, with labels from a closed set whatever
// the caller sent, and neither span nor metric quotes the arguments.
func TestRefusals(t *testing.T) {
	var gates []string
	for _, g := range gate.Names() {
		gates = append(gates, "tracon.denials{gate="+string(g)+"}")
	}
	for _, c := range gatecase.Denials() {
		t.Run(c.Name, func(t *testing.T) {
			w, h := newWitness(t, true), gatecase.New(t)
			c.Change(t, h)
			if _, err := run(t, w, h, answering{}); !errors.Is(err, gate.ErrDenied) {
				t.Fatalf("err = %v, want a refusal", err)
			}
			if m := w.metrics(t); m["tracon.denials{gate="+string(c.Gate)+"}"] != 1 {
				t.Errorf("metrics %v", m)
			} else {
				for name := range m {
					if strings.HasPrefix(name, "tracon.denials") && !slices.Contains(gates, name) || strings.HasPrefix(name, "tracon.runs") {
						t.Errorf("there is a series %s", name)
					}
				}
			}
			s := w.spans.Ended()[0]
			if got := attributes(s); got["tracon.gate.denied"] != string(c.Gate) || got["error.type"] != string(c.Gate) {
				t.Errorf("attributes %v", got)
			}
			if s.Name() != "execute_tool run_skill_script" {
				t.Errorf("the name of a refused call's span is %q: it holds what a stranger sent", s.Name())
			}
			if told := w.told(t); strings.Contains(told, gatecase.Canary) {
				t.Errorf("it holds the arguments: %s", told)
			}
		})
	}
}

// R16: an entry that cannot be written is counted, and the call is not a refusal.
func TestLogFails(t *testing.T) {
	w, h := newWitness(t, false), gatecase.New(t)
	if err := h.Store.Close(); err != nil {
		t.Fatal(err)
	}
	h.Log.Watch(w.Append)
	if _, err := h.Log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Policy}); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("err = %v", err)
	}
	if m := w.metrics(t); m["tracon.audit.failures{}"] != 1 {
		t.Errorf("metrics %v", m)
	}
}

// Names of tenants, skills and scripts are labels only where somebody asks for it.
func TestNames(t *testing.T) {
	for _, names := range []bool{false, true} {
		w, h := newWitness(t, names), gatecase.New(t)
		if _, err := run(t, w, h, answering{result: executor.Result{Ending: executor.Exited(0)}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(fmt.Sprint(w.metrics(t)), gatecase.Tenant); got != names {
			t.Errorf("with Names %v the tenant is a label: %v", names, got)
		}
	}
}

// The state of a host is asked when somebody collects, and no more after stop.
func TestWatch(t *testing.T) {
	w := newWitness(t, false)
	var failed error
	stop, err := w.Watch(observe.State{
		Stats: func() tracon.Stats { return tracon.Stats{Slots: 8, InUse: 3, Waiting: 2, Abandoned: 1, Unwritten: 4} },
		Ready: func(context.Context) error { return failed },
	})
	if err != nil {
		t.Fatal(err)
	}
	m := w.metrics(t)
	for name, want := range map[string]int64{"tracon.slots": 8, "tracon.slots.in_use": 3, "tracon.slots.waiting": 2,
		"tracon.executions.abandoned": 1, "tracon.endings.unwritten": 4, "tracon.ready": 1} {
		if m[name+"{}"] != want {
			t.Errorf("%s = %d, want %d", name, m[name+"{}"], want)
		}
	}
	failed = errors.New("the store is stopped")
	if m := w.metrics(t); m["tracon.ready{}"] != 0 {
		t.Errorf("tracon.ready = %d, want 0", m["tracon.ready{}"])
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if m := w.metrics(t); len(m) != 0 {
		t.Errorf("after stop: %v", m)
	}
}

// A request is measured by its route, never by its path or a method of its own; a
// trace that came with it is linked, not continued.
func TestHTTP(t *testing.T) {
	w := newWitness(t, false)
	h := w.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanContextFromContext(r.Context()).IsValid() {
			t.Error("the handler has no span")
		}
		http.Error(w, "no", http.StatusBadGateway)
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err == nil {
			t.Error("a recorder has no deadlines, so this is not what was asked")
		} else if !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}), func(*http.Request) string { return "/v1/skills/{skill}" })
	r := httptest.NewRequest("BREW", "/v1/skills/"+gatecase.Canary+"?q="+gatecase.Canary, nil)
	const theirs = "0af7651916cd43dd8448eb211c80319c"
	r.Header.Set("Traceparent", "00-"+theirs+"-b7ad6b7169203331-01")
	h.ServeHTTP(httptest.NewRecorder(), r)

	s := w.spans.Ended()[0]
	if s.Name() != "_OTHER /v1/skills/{skill}" || s.SpanContext().TraceID().String() == theirs {
		t.Errorf("span %q of trace %s", s.Name(), s.SpanContext().TraceID())
	}
	if links := s.Links(); len(links) != 1 || links[0].SpanContext.TraceID().String() != theirs {
		t.Errorf("links %v", links)
	}
	if m := w.metrics(t); m["http.server.request.duration{http.request.method=_OTHER,http.response.status_code=502,http.route=/v1/skills/{skill}}"] != 1 || m["http.server.active_requests{}"] != 0 {
		t.Errorf("metrics %v", m)
	}
	if told := w.told(t); strings.Contains(told, gatecase.Canary) {
		t.Errorf("it holds the path: %s", told)
	}
}

// The zero Config tells nobody and needs nobody.
func TestZeroConfig(t *testing.T) {
	o, err := observe.New(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, done := o.Call(t.Context(), gate.Call{Arguments: json.RawMessage(`[]`)})
	done(tracon.Observation{Err: tracon.ErrClosed})
	o.Append(time.Second, true)
}
