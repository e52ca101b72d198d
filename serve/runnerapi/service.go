package runnerapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// Defaults of a [Config].
const (
	DefaultKeepBytes = 256 << 20
	DefaultBodyBytes = 256 << 20
)

// A Runner takes deliveries through the second door: *tracon.Runner does.
type Runner interface {
	Deliver(ctx context.Context, d gate.Delivery) (tracon.Delivered, error)
	Standing(ctx context.Context) (gate.Standing, error)
	Stats() tracon.Stats
	Ready(ctx context.Context) error
}

// Peers knows who sends a request, by its credential. It is safe for concurrent use.
type Peers interface {
	// Peer returns whom the request's credential is of, and a name for that credential.
	// An error that wraps ErrStranger means that nobody is let in by it; any other
	// that it could not be found out.
	Peer(r *http.Request) (p gate.Peer, credential string, err error)
}

// A Limiter bounds what one peer may ask: *limit.Limits does, with the peer in the
// place of a tenant.
type Limiter interface {
	// Enter lets one request in until leave is called; nil: not before after has passed.
	Enter(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration)
}

// Errors of the service, besides those of [tracon.Runner.Deliver].
var (
	// ErrStranger: the credential is missing, or lets nobody in.
	ErrStranger = errors.New("runnerapi: no credential that lets in")
	// ErrDraining: the runner takes no more runs. Ask another one.
	ErrDraining = errors.New("runnerapi: the runner takes no more runs")
	// ErrUnknownBundle: the closure that the run names was not uploaded, or was
	// forgotten. Upload it, and send the run again: nothing was started.
	ErrUnknownBundle = errors.New("runnerapi: the closure is not here")
	// ErrRepeated: a run of that id came already. What came of it its own answer says.
	ErrRepeated = errors.New("runnerapi: the run came already")
)

// Config configures a [Service]. All fields down to Limiter are required.
type Config struct {
	Name       string // of the runner, which tickets are bound to
	Runner     Runner
	Receptions gate.Receptions
	Peers      Peers
	Limiter    Limiter

	// KeepBytes is how many bytes of closures are kept in memory, half of them of one
	// peer. Zero means 256 MiB.
	KeepBytes int64

	// BodyBytes is how many bytes the requests under way may have, half of them those of
	// one peer, each until it has its answer. Reading takes about four times as much
	// memory. Zero means 256 MiB.
	BodyBytes int64

	// TicketKeys tells the peer of that name which keys it may sign tickets with, by
	// their fingerprints; nil: it is not told.
	TicketKeys func(peer string) []string

	Metrics http.Handler // at metrics, for peers of all tenants; nil: there is none
	Logger  *slog.Logger // nil means slog.Default()
}

// A Service is one runner service. It is safe for concurrent use.
type Service struct {
	c        Config
	kept     *shelf
	started  *started
	bodies   *budget
	draining atomic.Bool
}

// New returns a Service for c.
func New(c Config) (*Service, error) {
	if c.Runner == nil || c.Receptions == nil || c.Peers == nil || c.Limiter == nil {
		return nil, errors.New("runnerapi: Config needs a Runner, Receptions, Peers and a Limiter")
	}
	if err := grant.CheckName("runner", c.Name); err != nil {
		return nil, err
	}
	if c.KeepBytes < 0 || c.BodyBytes < 0 {
		return nil, errors.New("runnerapi: a negative number of bytes; zero means the default")
	}
	c.KeepBytes, c.BodyBytes = cmp.Or(c.KeepBytes, DefaultKeepBytes), cmp.Or(c.BodyBytes, DefaultBodyBytes)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Service{c: c, kept: newShelf(c.KeepBytes), started: newStarted(startedMost), bodies: newBudget(c.BodyBytes)}, nil
}

// Drain takes no more runs. Those under way go on.
func (s *Service) Drain() { s.draining.Store(true) }

// Draining reports whether the service takes no more runs.
func (s *Service) Draining() bool { return s.draining.Load() }

// Keep keeps a closure of the peer for the runs that name its digest.
func (s *Service) Keep(peer gate.Peer, b bundle.Bundle) error { return s.kept.put(owner(peer), b) }

// Kept reports whether the peer's closure is here.
func (s *Service) Kept(peer gate.Peer, d bundle.Digest) bool {
	_, ok := s.kept.get(owner(peer), d)
	return ok
}

// Run makes run for peer, whose credential was checked, and returns what came of it.
// Got is the closure where another way than PUT brought it; zero: it is in run, or was
// uploaded. When ctx is done the run is stopped.
//
// Show, if it is not nil, is called with what a run with the member "tracon" writes while
// it lasts: by one goroutine, and no more when Run has returned. The run does not wait for
// it: what it is too slow for is lost, which the next piece tells of.
//
// # Errors
//
// ErrDraining, ErrUnknownBundle, ErrRepeated, one that wraps wire.ErrMalformed, and those of
// [tracon.Runner.Deliver]. [Service.Problem] says what a peer is told of each, and
// whether the script may have run.
func (s *Service) Run(ctx context.Context, peer gate.Peer, run wire.Run, got bundle.Bundle, show func(wire.Output)) (wire.Answer, error) {
	if s.Draining() {
		return wire.Answer{}, ErrDraining
	}
	d, err := s.delivery(ctx, peer, run, got)
	if err != nil {
		return wire.Answer{}, err
	}
	untold := run.More != nil && d.Ticket == "" // a ticket holds once by itself
	if untold && !s.started.add(owner(peer), run.More.ID) {
		return wire.Answer{}, ErrRepeated
	}
	end, seen := func() {}, false
	if show != nil && run.More != nil {
		d.Live = gate.NewLive(0)
		end = sync.OnceFunc(showRun(run, d.Live, func(o wire.Output) { seen = true; show(o) }))
		defer end()
	}
	out, err := s.c.Runner.Deliver(ctx, d)
	end()
	if err != nil {
		err = &runError{admitted: out.ID != "", err: err}
		if untold && !seen && s.Problem(run, err).NotStarted { // of what was seen nobody says so
			s.started.forget(owner(peer), run.More.ID)
		}
		return wire.Answer{}, err
	}
	return answer(run, out), nil
}

// runError is the error of a run that went to the door.
type runError struct {
	admitted bool
	err      error
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// delivery is what run asks the second door for.
func (s *Service) delivery(ctx context.Context, peer gate.Peer, run wire.Run, got bundle.Bundle) (gate.Delivery, error) {
	if err := run.Check(); err != nil {
		return gate.Delivery{}, err
	}
	script, err := run.Digest()
	if err != nil {
		return gate.Delivery{}, err
	}
	request, err := run.Commitment()
	if err != nil {
		return gate.Delivery{}, err
	}
	d := gate.Delivery{Peer: peer, Tenant: run.Tenant, Runtime: run.Runtime, ScriptDigest: script, Stdin: run.Stdin(), Mode: gate.Stdin,
		Timeout: run.Timeout(), MaxOutput: run.MaxOutputBytes, Request: request}
	m := run.More
	if m == nil {
		d.Source = []byte(run.Source)
		return d, nil
	}
	if d.Digest, err = m.Digest(); err != nil {
		return gate.Delivery{}, err
	}
	if d.Bundle, err = s.closure(ctx, peer, m, d.Digest, got); err != nil {
		return gate.Delivery{}, err
	}
	if text, _, ok := d.Bundle.Text(m.Script); ok && run.Source != "" && run.Source != text {
		return gate.Delivery{}, fmt.Errorf("%w: source is not the script of the closure", wire.ErrMalformed)
	}
	d.Skill, d.Script, d.Mode, d.Words, d.Module = m.Skill, m.Script, gate.Mode(m.Mode), m.Words, m.Module
	d.Inputs, d.OutputPatterns = wire.Files(m.Inputs), m.OutputPatterns
	d.MaxOutputs, d.MaxOutputFiles, d.Memory, d.Processes = m.MaxOutputsBytes, m.MaxOutputFiles, m.Memory, m.Processes
	d.Network, d.Tier, d.RequireWalls, d.Ticket = gate.Network(m.Network), grant.Tier(m.Tier), m.RequireWalls, m.Ticket
	d.Run, d.Actor, d.Grant = m.ID, m.Actor, m.Grant
	if len(m.Environment) > 0 {
		d.Environment = map[string]string{}
		for _, v := range m.Environment {
			d.Environment[v.Name] = v.Value
		}
	}
	return d, nil
}

// closure finds the closure that a run names. Whether it has the digest, the gate says.
func (s *Service) closure(ctx context.Context, peer gate.Peer, m *wire.More, named bundle.Digest, got bundle.Bundle) (bundle.Bundle, error) {
	if !got.IsZero() {
		return got, nil
	}
	r, err := s.c.Receptions.Reception(ctx)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("runnerapi: reading the settings: %w", err)
	}
	b, there, err := m.Closure(r.OrDefaults().Content)
	switch {
	case err != nil:
		return bundle.Bundle{}, fmt.Errorf("%w: the closure: %w", wire.ErrMalformed, err)
	case there:
		return b, nil
	}
	if b, ok := s.kept.get(owner(peer), named); ok {
		return b, nil
	}
	return bundle.Bundle{}, ErrUnknownBundle
}

// answer is what is said of out to who sent run.
func answer(run wire.Run, out tracon.Delivered) wire.Answer {
	a := wire.Answer{StandardOutput: out.Stdout, StandardError: out.Stderr, Truncated: out.Truncated, TimedOut: out.Ending.TimedOut()}
	code, _ := out.Ending.ExitCode()
	signal, signaled := out.Ending.Signal()
	switch kind := out.Ending.Name(); {
	case signaled:
		code = 128 + signal
	case kind == "out_of_memory", kind == "output_flood":
		code = 128 + 9 // as a shell tells of SIGKILL
	case kind == "policy_violation":
		code = 128 + 31 // and of SIGSYS
	}
	if !a.TimedOut {
		a.ExitCode = &code
	}
	if run.More == nil {
		return a
	}
	m := &wire.AnswerMore{
		ID: run.More.ID, Bundle: out.Digest.String(), Ending: wire.Ending{Kind: out.Ending.Name()},
		Outputs: wire.FilesOf(out.Outputs), Notes: out.Notes, Tier: string(out.Standing.Tier), Claimed: out.Standing.Claimed,
		DurationSeconds: out.Duration.Seconds(), LogIndex: out.Receipt.Index(), Walls: walls(out.Standing),
	}
	switch {
	case signaled:
		m.Ending.Signal = signal
	case m.Ending.Kind == "exited":
		m.Ending.Code = code
	}
	if out.Replaced {
		m.StandardOutput64, m.StandardError64 = out.RawStdout, out.RawStderr
	}
	if !out.PostureDigest.IsZero() {
		m.PostureDigest = out.PostureDigest.String()
	}
	if out.Abandoned {
		m.Notes = append(slices.Clip(m.Notes), "the runner's executor had not answered at its wait limit")
	}
	a.More = m
	return a
}

func walls(s gate.Standing) []wire.Wall {
	list := []wire.Wall{}
	for _, w := range s.Walls {
		list = append(list, wire.Wall{Name: w.Name, Stands: w.Stands})
	}
	return list
}

// Info returns what the runner tells of itself. Its walls are those that probes have
// proved, or are marked as claimed.
func (s *Service) Info(ctx context.Context) (wire.Info, error) {
	r, err := s.c.Receptions.Reception(ctx)
	if err != nil {
		return wire.Info{}, fmt.Errorf("runnerapi: reading the settings: %w", err)
	}
	standing, err := s.c.Runner.Standing(ctx)
	if err != nil {
		return wire.Info{}, err
	}
	r = r.OrDefaults()
	stats := s.c.Runner.Stats()
	i := wire.Info{
		Name: s.c.Name, Protocols: []string{wire.Protocol, wire.ProtocolLive}, Runtimes: []wire.Runtime{},
		Executor: standing.Executor, Tier: string(standing.Tier), Claimed: standing.Claimed, Walls: walls(standing),
		Slots: stats.Slots, SlotsPerTenant: stats.PerTenant, Busy: stats.InUse, Waiting: stats.Waiting, Draining: s.Draining(),
		RequireTicket: r.RequireTicket, MaxInline: wire.MaxInline,
		Limits: wire.Limits{TimeoutSeconds: r.Timeout.Seconds(), OutputBytes: r.MaxOutput, InputsBytes: r.MaxInputs,
			OutputsBytes: r.MaxOutputs, OutputFiles: r.MaxOutputFiles, Memory: r.Memory, Processes: r.Processes},
	}
	if r.Enabled {
		for _, name := range slices.Sorted(maps.Keys(r.Runtimes)) {
			i.Runtimes = append(i.Runtimes, wire.Runtime{Name: name, Extension: r.Runtimes[name].Extension})
		}
	}
	return i, nil
}

// Problem is what a peer is told of an error of [Service.Run]: nothing of this host,
// and whether the script may have run.
func (s *Service) Problem(run wire.Run, err error) wire.Problem {
	p := wire.Problem{NotStarted: true}
	if run.More != nil {
		p.ID = run.More.ID
	}
	set := func(status int, code, detail string) wire.Problem {
		p.Status, p.Code, p.Detail = status, code, detail
		return p
	}
	switch {
	case errors.Is(err, ErrStranger):
		return set(http.StatusUnauthorized, "unauthenticated", "send a key of this runner as a bearer token, or a client certificate that it knows")
	case errors.Is(err, wire.ErrTooLarge):
		return set(http.StatusRequestEntityTooLarge, "too_large", strings.TrimPrefix(err.Error(), "wire: "))
	case errors.Is(err, wire.ErrMalformed):
		return set(http.StatusBadRequest, "malformed", strings.TrimPrefix(err.Error(), "wire: "))
	case errors.Is(err, ErrUnknownBundle):
		return set(http.StatusConflict, "bundle_unknown", "the closure is not here; upload it, and send the run again")
	case errors.Is(err, ErrRepeated):
		p.NotStarted = false
		return set(http.StatusConflict, "run_repeated", "a run of this id came already, and is not run again")
	case errors.Is(err, ErrDraining):
		p.RetryAfterSeconds = 30
		return set(http.StatusServiceUnavailable, "draining", "the runner takes no more runs")
	}
	if d, ok := errors.AsType[*gate.Denial](err); ok {
		switch d.Gate {
		case gate.SwitchGate: // its reason tells of this host's settings
			return set(http.StatusForbidden, string(d.Gate), "the runner is off")
		case gate.GrantGate:
			return set(http.StatusForbidden, string(d.Gate), d.Err.Error())
		}
		return set(http.StatusUnprocessableEntity, string(d.Gate), d.Err.Error())
	}
	if busy, ok := errors.AsType[*tracon.BusyError](err); ok {
		p.RetryAfterSeconds = max(1, int((busy.RetryAfter+time.Second-1)/time.Second))
	}
	code := tracon.Code(tracon.Outcome{}, err)
	switch code {
	case "busy":
		p.RetryAfterSeconds = max(1, p.RetryAfterSeconds)
		return set(http.StatusServiceUnavailable, code, "there is no slot")
	case "executor_unavailable":
		return set(http.StatusServiceUnavailable, code, "the script could not be started")
	}
	// From here on the script may have run, unless the door did not let it through.
	ran, ok := errors.AsType[*runError](err)
	p.NotStarted = !ok || !ran.admitted
	switch code {
	case "audit_unavailable":
		return set(http.StatusServiceUnavailable, code, "the runner's log cannot be written")
	case "cancelled":
		return set(http.StatusServiceUnavailable, code, "the run was stopped")
	case "executor_failed":
		return set(http.StatusInternalServerError, code, "running the script failed")
	}
	return set(http.StatusInternalServerError, "unknown", "the runner failed")
}
