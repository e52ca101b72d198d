package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/internal/strictyaml"
	"github.com/tracon-go/tracon/internal/telemetry"
	"github.com/tracon-go/tracon/observe"
)

type answering struct{ standing gate.Standing }

func (answering) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{Ending: executor.Exited(0)}, nil
}

func (a answering) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{Executor: a.standing.Executor, Tier: a.standing.Tier, Claimed: a.standing.Claimed}, nil
}

// start returns telemetry and an observer over it, both ended with the test.
func start(t *testing.T, c telemetry.Config) (*telemetry.Telemetry, *observe.Observer) {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	tel, err := telemetry.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close(context.Background()) })
	o, err := observe.New(observe.Config{Traces: tel.Traces, Metrics: tel.Metrics})
	if err != nil {
		t.Fatal(err)
	}
	return tel, o
}

// run has one call admitted and one refused.
func run(t *testing.T, o *observe.Observer) {
	t.Helper()
	h := gatecase.New(t)
	h.Log.Watch(o.Append)
	r, err := tracon.New(tracon.Config{Gate: gate.New(h.Config), Executor: answering{h.Standing}, Calls: h.Store, Observer: o, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), h.Call); err != nil {
		t.Fatal(err)
	}
	h.Call.Script = "no.py"
	if _, err := r.Run(t.Context(), h.Call); err == nil {
		t.Fatal("an unknown script was not refused")
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
	o.Append(time.Second, true)
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics: %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Every metric that an alert asks for is one that /metrics has, with the labels by
// which it asks.
func TestAlerts(t *testing.T) {
	tel, o := start(t, telemetry.Config{Version: "v0", Instance: "i"})
	stop, err := o.Watch(observe.State{Stats: func() tracon.Stats { return tracon.Stats{} }, Ready: func(context.Context) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	run(t, o)
	o.HTTP(http.NotFoundHandler(), func(*http.Request) string { return "none" }).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	has := map[string]bool{"up": true} // is Prometheus's own
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)[{ ]`).FindAllStringSubmatch(scrape(t, tel), -1) {
		has[m[1]] = true
	}

	text, err := os.ReadFile("../../docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	root, err := strictyaml.Parse(text, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	exprs := expressions(root)
	if len(exprs) < 8 {
		t.Fatalf("%d alerts", len(exprs))
	}
	// What stands before a bracket, a brace, a comparison or the end is a metric;
	// what stands before a parenthesis is a function.
	quoted := regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^]]*\]|by \([^)]*\)`)
	word := regexp.MustCompile(`[a-z_]{2,}[a-z0-9_]*(\()?|[0-9.]+`)
	for _, e := range exprs {
		asked := 0
		for _, m := range word.FindAllStringSubmatch(quoted.ReplaceAllString(e, ""), -1) {
			name := m[0]
			if m[1] != "" || name == "and" || name == "sum" || name[0] <= '9' {
				continue
			}
			if asked++; !has[name] {
				t.Errorf("an alert asks for %s, which /metrics does not have: %s", name, e)
			}
		}
		if asked == 0 {
			t.Errorf("an alert asks for nothing: %s", e)
		}
	}
}

func expressions(n *strictyaml.Node) (all []string) {
	for _, m := range n.Members {
		if m.Key == "expr" {
			all = append(all, m.Value.Text)
		}
		all = append(all, expressions(m.Value)...)
	}
	for _, item := range n.Items {
		all = append(all, expressions(item)...)
	}
	return all
}

// /metrics holds no name of a tenant, a skill or a script, and no text of one.
func TestMetricsNameNobody(t *testing.T) {
	tel, o := start(t, telemetry.Config{})
	run(t, o)
	text := scrape(t, tel)
	for _, not := range []string{gatecase.Tenant, gatecase.Skill, "run.py", "no.py", gatecase.Canary} {
		if strings.Contains(text, not) {
			t.Errorf("/metrics holds %q", not)
		}
	}
	if !strings.Contains(text, `tracon_denials_total{gate="name"} 1`) {
		t.Errorf("/metrics: %s", text)
	}
}

// Spans reach the collector at the latest when it is closed.
func TestTraces(t *testing.T) {
	var posts atomic.Int64
	var body atomic.Pointer[[]byte]
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		body.Store(&b)
		posts.Add(1)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	tel, o := start(t, telemetry.Config{Version: "v0", Instance: "i-1", Traces: collector.URL + "/v1/traces", Share: 1})
	run(t, o)
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if posts.Load() == 0 {
		t.Fatal("the collector got nothing")
	}
	got := string(*body.Load())
	for _, want := range []string{"execute_tool run_skill_script unit-converter scripts/run.py", "tracon.gate.denied", "i-1"} {
		if !strings.Contains(got, want) {
			t.Errorf("the spans lack %q", want)
		}
	}
	if strings.Contains(got, gatecase.Canary) {
		t.Error("the spans hold what they must not")
	}
}

// An address that is none is refused at the start.
func TestBadAddress(t *testing.T) {
	if _, err := telemetry.New(t.Context(), telemetry.Config{Traces: "http://[", Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("no error")
	}
}
