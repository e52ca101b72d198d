package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// A Delivery is a run that another host's gates have decided on, and that it asks
// this one to make. Nothing in it is trusted but Peer, which whoever makes the
// Delivery takes from a credential.
type Delivery struct {
	Peer    Peer
	Tenant  string
	Runtime string // a name of the runner's list, such as "python-3.12"

	// Source is the text of a script that comes alone; then Bundle is zero, and
	// Digest, Skill and Script are empty. Else Bundle is the whole closure, Digest
	// what the peer says it has, and Script the path in it. ScriptDigest is the
	// SHA-256 that the peer says the script has.
	Source        []byte
	Bundle        bundle.Bundle
	Digest        bundle.Digest
	ScriptDigest  bundle.Digest
	Skill, Script string

	Mode           Mode // required
	Words          []string
	Stdin          []byte
	Module         string
	Inputs         []bundle.File
	OutputPatterns []string

	// Limits of the run. Timeout and MaxOutput are required; zero outputs means that
	// none come back, zero memory and processes the runner's own. More than the
	// reception allows is a refusal.
	Timeout        time.Duration
	MaxOutput      int
	MaxOutputs     int64
	MaxOutputFiles int
	Memory         int64
	Processes      int
	Network        Network
	Environment    map[string]string
	Tier           grant.Tier // at least; empty: any
	RequireWalls   []string

	// Run, Actor and Grant are what the peer tells of its own: for the log.
	Run, Actor, Grant string

	Ticket  string
	Request bundle.Digest // of everything that the peer asks for, as its ticket has it

	Live *Live // where output goes while the script runs; nil: nowhere
}

// alone reports whether a script came without a closure.
func (d Delivery) alone() bool {
	return d.Bundle.IsZero() && d.Digest.IsZero() && d.Skill == "" && d.Script == ""
}

// A Peer is another host, as its credential says. The zero Peer may nothing.
type Peer struct {
	Name       string   // for the log
	Tenants    []string // for which it may ask
	AllTenants bool     // it may ask for every tenant

	Still func(ctx context.Context) error // as that of [Call]
}

// may says why the peer may not ask for the tenant, or nil.
func (p Peer) may(tenant string) error {
	if err := errors.Join(CheckTenant(tenant), grant.CheckName("peer", p.Name)); err != nil {
		return err
	}
	if !p.AllTenants && !slices.Contains(p.Tenants, tenant) {
		return fmt.Errorf("the peer %q may not ask for tenant %q", p.Name, tenant)
	}
	return nil
}

func (p Peer) clone() Peer { p.Tenants = slices.Clone(p.Tenants); return p }

// A Reception is what a runner service does for others. The zero Reception is off
// and has no runtime: nothing runs.
type Reception struct {
	Enabled  bool               // the runner's own switch
	Runtimes map[string]Runtime // by the name that a delivery asks for; empty: nothing runs

	MinTier       grant.Tier // below which nothing runs; empty: any
	RequireWalls  []string   // that must stand, as in [Host]
	TrustClaimed  bool       // as in [Host]
	RequireTicket bool       // each delivery has one; see Config.Tickets
	Network       Network    // the most that a delivery may ask for; empty: none
	Content       bundle.Limits

	// The most that a delivery may ask for. Zero means the default of [Policy]; of
	// the timeout [DefaultMostTimeout], of the arguments 8 MiB, of the output
	// [DefaultMostOutput], of the memory [DefaultMostMemory], of the processes
	// [DefaultMostProcesses].
	Timeout        time.Duration
	MaxArguments   int // bytes of standard input
	MaxOutput      int // bytes of each stream
	MaxInputs      int64
	MaxOutputs     int64
	MaxOutputFiles int
	Memory         int64
	Processes      int
}

// What a [Reception] means by zero, where it is more than a [Policy] does.
const (
	DefaultMostTimeout   = 10 * time.Minute
	DefaultMostOutput    = 8 << 20
	DefaultMostMemory    = 2 << 30
	DefaultMostProcesses = 256
)

// A Runtime is what runs the scripts that are sent for a name.
type Runtime struct {
	Interpreter Interpreter
	Extension   string // of the scripts, such as "py"
}

// OrDefaults returns r with its limits filled in.
func (r Reception) OrDefaults() Reception {
	r.Timeout = cmp.Or(r.Timeout, DefaultMostTimeout)
	r.MaxArguments = cmp.Or(r.MaxArguments, CeilingMaxArguments)
	r.MaxOutput = cmp.Or(r.MaxOutput, DefaultMostOutput)
	r.MaxInputs = cmp.Or(r.MaxInputs, DefaultMaxInputs)
	r.MaxOutputs = cmp.Or(r.MaxOutputs, DefaultMaxOutputs)
	r.MaxOutputFiles = cmp.Or(r.MaxOutputFiles, DefaultMaxOutputFiles)
	r.Memory = cmp.Or(r.Memory, DefaultMostMemory)
	r.Processes = cmp.Or(r.Processes, DefaultMostProcesses)
	r.Content = r.Content.OrDefaults()
	return r
}

// Validate says what in r cannot hold, or nil.
func (r Reception) Validate() error {
	p := Policy{MinTier: r.MinTier, RequireWalls: r.RequireWalls, Network: r.Network, Timeout: r.Timeout, MaxArguments: r.MaxArguments,
		MaxOutput: r.MaxOutput, MaxInputs: r.MaxInputs, MaxOutputs: r.MaxOutputs, MaxOutputFiles: r.MaxOutputFiles, Memory: r.Memory, Processes: r.Processes}
	errs := []error{p.Validate()}
	for _, name := range slices.Sorted(maps.Keys(r.Runtimes)) {
		in := r.Runtimes[name]
		errs = append(errs, CheckRuntime(name), CheckExtension(in.Extension), in.Interpreter.check())
		if in.Interpreter.Path == "" {
			errs = append(errs, fmt.Errorf("%w: the runtime %q has no path of an interpreter", ErrPolicy, name))
		}
	}
	return errors.Join(errs...)
}

// Receptions knows what a runner does for others. It is safe for concurrent use.
// Its error is no refusal: nothing runs.
type Receptions interface {
	Reception(ctx context.Context) (Reception, error)
}

// Receiving is a [Receptions] that never changes.
type Receiving Reception

// Reception returns r.
func (r Receiving) Reception(context.Context) (Reception, error) { return Reception(r), nil }

// A Claim is what a ticket must stand for.
type Claim struct {
	Peer, Tenant, Run string
	Digest            bundle.Digest // of the closure
	Request           bundle.Digest // of everything that is asked for
}

// Tickets knows who may sign tickets. It is safe for concurrent use.
type Tickets interface {
	// Redeem holds that the ticket was signed for c and this runner, that its time is
	// not over, and that nobody used it before; then it is used up. Otherwise the
	// error wraps ErrTicket. Any other error means that something could not be read.
	Redeem(ctx context.Context, ticket string, c Claim) error
}

// ErrTicket is wrapped by the error for a ticket that does not stand for what it
// came with.
var ErrTicket = errors.New("gate: the ticket does not hold")

// NewReceiver returns a Gate that has one door: [Gate.Accept]. Its Admit refuses
// every call at the switch. Tickets may be nil. It panics when receptions or log is
// nil.
func NewReceiver(receptions Receptions, tickets Tickets, log *audit.Log, instance string) *Gate {
	if receptions == nil || log == nil {
		panic("gate: NewReceiver with nothing to look at")
	}
	return New(Config{Hosts: Static{}, Policies: closed{}, Contents: closed{}, Declarer: closed{}, Schemas: closed{}, Grants: closed{},
		Log: log, Instance: instance, Receptions: receptions, Tickets: tickets})
}

// closed knows nothing and nobody.
type closed struct{}

var errClosed = fmt.Errorf("%w: this host takes deliveries alone", ErrUnknown)

func (closed) Policy(context.Context, string) (Policy, error) { return Policy{}, nil }

func (closed) Find(context.Context, string, string, string) (Origin, error) { return 0, errClosed }

func (closed) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	return bundle.Bundle{}, errClosed
}

func (closed) Declare(bundle.Bundle, string) (Declaration, error) { return Declaration{}, errClosed }

func (closed) Check(context.Context, []byte, []byte) ([]byte, error) { return nil, errClosed }

func (closed) Grant(context.Context, grant.Ref) (grant.Grant, error) {
	return grant.Grant{}, grant.ErrNotFound
}
