package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// receiver is a runner service on which the delivery passes every gate.
type receiver struct {
	*gatecase.House
	reception gate.Reception
	tickets   gate.Tickets
	d         gate.Delivery
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	h := gatecase.New(t)
	in := gate.Interpreter{Path: h.Python(), Digest: bundle.Sum([]byte("python3"))}
	r := &receiver{House: h, reception: gate.Reception{Enabled: true, Runtimes: map[string]gate.Runtime{"python-3.12": {Interpreter: in, Extension: "py"}}}}
	r.d = gate.Delivery{
		Peer: gate.Peer{Name: "control-plane", Tenants: []string{"acme", gatecase.Tenant}}, Tenant: gatecase.Tenant, Runtime: "python-3.12",
		Skill: "s", Script: "scripts/run.py", Mode: gate.Argv, Words: []string{"--value", gatecase.Canary},
		Timeout: time.Second, MaxOutput: 1000, Run: "019e9d3c-0000-7000-8000-000000000001", Actor: "told", Grant: "told-grant", Request: bundle.Sum([]byte("request")),
	}
	r.send(t, bundle.File{Path: "scripts/run.py", Data: []byte("import lib\n")}, bundle.File{Path: "scripts/lib.py", Data: []byte("pass\n")})
	return r
}

// send puts a closure into the delivery, with its digests.
func (r *receiver) send(t testing.TB, files ...bundle.File) {
	t.Helper()
	b, err := bundle.New(files, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r.d.Bundle, r.d.Digest = b, b.Digest()
	_, r.d.ScriptDigest, _ = b.Text(r.d.Script)
}

// alone makes the delivery one that knows R28 alone.
func (r *receiver) alone(source string) {
	r.d.Bundle, r.d.Digest, r.d.Skill, r.d.Script = bundle.Bundle{}, bundle.Digest{}, "", ""
	r.d.Source, r.d.ScriptDigest = []byte(source), bundle.Sum([]byte(source))
	r.d.Mode, r.d.Words, r.d.Stdin = gate.Stdin, nil, []byte(`{}`)
}

func (r *receiver) gate() *gate.Gate {
	return gate.NewReceiver(gate.Receiving(r.reception), r.tickets, r.Log, "this-instance")
}

// booth redeems one ticket, once.
type booth struct {
	used bool
	want gate.Claim
	err  error
}

func (b *booth) Redeem(_ context.Context, ticket string, c gate.Claim) error {
	switch {
	case b.err != nil:
		return b.err
	case ticket != "good" || b.used || c != b.want:
		return fmt.Errorf("%w: it is used up, or of another run", gate.ErrTicket)
	}
	b.used = true
	return nil
}

// deliveryDenials are the ways in which the second door refuses.
func deliveryDenials() []struct {
	name, rule string
	gate       gate.Name
	change     func(t testing.TB, r *receiver)
} {
	d := func(change func(*gate.Delivery)) func(testing.TB, *receiver) {
		return func(_ testing.TB, r *receiver) { change(&r.d) }
	}
	own := func(change func(*gate.Reception)) func(testing.TB, *receiver) {
		return func(_ testing.TB, r *receiver) { change(&r.reception) }
	}
	type row = struct {
		name, rule string
		gate       gate.Name
		change     func(t testing.TB, r *receiver)
	}
	return []row{
		{"the runner is off", "R8", gate.SwitchGate, own(func(r *gate.Reception) { r.Enabled = false })},
		{"the reception is zero", "R8", gate.SwitchGate, own(func(r *gate.Reception) { *r = gate.Reception{} })},
		{"a limit that cannot hold", "R8", gate.SwitchGate, own(func(r *gate.Reception) { r.Timeout = -1 })},
		{"a wall that is none", "B2", gate.SwitchGate, own(func(r *gate.Reception) { r.RequireWalls = []string{"moat"} })},
		{"a runtime without an interpreter", "R11", gate.SwitchGate, own(func(r *gate.Reception) { r.Runtimes["python-3.12"] = gate.Runtime{Extension: "py"} })},
		{"a runtime of another host's", "R11", gate.SwitchGate, own(func(r *gate.Reception) {
			r.Runtimes["python-3.12"] = gate.Runtime{Extension: "py", Interpreter: gate.Interpreter{Name: "x"}}
		})},

		{"a tenant that is not the peer's", "M12", gate.GrantGate, d(func(d *gate.Delivery) { d.Tenant = "other" })},
		{"the tenant in another case", "M12", gate.GrantGate, d(func(d *gate.Delivery) { d.Tenant = "ACME" })},
		{"no tenant", "R20", gate.GrantGate, d(func(d *gate.Delivery) { d.Tenant = "" })},
		{"the host's own history", "B7", gate.GrantGate, d(func(d *gate.Delivery) { d.Peer.AllTenants, d.Tenant = true, gate.HostTenant })},
		{"the zero peer", "R20", gate.GrantGate, d(func(d *gate.Delivery) { d.Peer = gate.Peer{} })},
		{"a peer without a name", "R20", gate.GrantGate, d(func(d *gate.Delivery) { d.Peer.Name = "" })},
		{"a peer without tenants", "R20", gate.GrantGate, d(func(d *gate.Delivery) { d.Peer.Tenants = nil })},
		{"no ticket where one is asked for", "M11", gate.GrantGate, own(func(r *gate.Reception) { r.RequireTicket = true })},
		{"a ticket where nobody signs", "M11", gate.GrantGate, d(func(d *gate.Delivery) { d.Ticket = "good" })},
		{"a ticket that was used", "M11", gate.GrantGate, func(_ testing.TB, r *receiver) {
			r.d.Ticket, r.tickets = "good", &booth{used: true}
		}},
		{"a ticket of another run", "M11", gate.GrantGate, func(_ testing.TB, r *receiver) {
			r.d.Ticket, r.tickets = "good", &booth{want: gate.Claim{Run: "another"}}
		}},

		{"an unknown runtime", "R11", gate.InterpreterGate, d(func(d *gate.Delivery) { d.Runtime = "python-3.13" })},
		{"a runtime in another case", "R11", gate.InterpreterGate, d(func(d *gate.Delivery) { d.Runtime = "Python-3.12" })},
		{"a path as runtime", "R11", gate.InterpreterGate, d(func(d *gate.Delivery) { d.Runtime = "/usr/bin/python3" })},
		{"no runtime", "R11", gate.InterpreterGate, d(func(d *gate.Delivery) { d.Runtime = "" })},
		{"the list of runtimes is empty", "R11", gate.InterpreterGate, own(func(r *gate.Reception) { r.Runtimes = nil })},

		{"a script that leads out", "R14", gate.NameGate, d(func(d *gate.Delivery) { d.Script = "../run.py" })},
		{"an absolute script", "R14", gate.NameGate, d(func(d *gate.Delivery) { d.Script = "/run.py" })},
		{"no script", "R14", gate.NameGate, d(func(d *gate.Delivery) { d.Script = "" })},
		{"no skill", "R14", gate.NameGate, d(func(d *gate.Delivery) { d.Skill = "" })},
		{"a skill with a line feed", "R14", gate.NameGate, d(func(d *gate.Delivery) { d.Skill = "a\nb" })},

		{"a script that is not in the closure", "B1", gate.ContentGate, d(func(d *gate.Delivery) { d.Script = "scripts/other.py" })},
		{"no closure", "B1", gate.ContentGate, d(func(d *gate.Delivery) { d.Bundle = bundle.Bundle{} })},
		{"a closure above the limit", "R15", gate.ContentGate, own(func(r *gate.Reception) { r.Content = bundle.Limits{TotalBytes: 5} })},
		{"a script alone above the limit", "R15", gate.ContentGate, func(_ testing.TB, r *receiver) {
			r.alone("print(1)")
			r.reception.Content = bundle.Limits{FileBytes: 5}
		}},
		{"a module that is another script", "B4", gate.ContentGate, d(func(d *gate.Delivery) { d.Module = "os" })},
		{"a module that Python finds elsewhere", "B4", gate.ContentGate, func(t testing.TB, r *receiver) {
			r.d.Module = "scripts.run"
			r.send(t, bundle.File{Path: "scripts/run.py"}, bundle.File{Path: "scripts/run/__init__.py"})
		}},

		{"a digest of other bytes", "R10", gate.PinGate, d(func(d *gate.Delivery) { d.Digest[0] ^= 1 })},
		{"no digest", "R10", gate.PinGate, d(func(d *gate.Delivery) { d.Digest = bundle.Digest{} })},
		{"a script's digest of other bytes", "R28", gate.PinGate, d(func(d *gate.Delivery) { d.ScriptDigest[0] ^= 1 })},
		{"a sibling file that was changed", "B1", gate.PinGate, func(t testing.TB, r *receiver) {
			was := r.d.Digest
			r.send(t, bundle.File{Path: "scripts/run.py", Data: []byte("import lib\n")}, bundle.File{Path: "scripts/lib.py", Data: []byte("evil\n")})
			r.d.Digest = was
		}},
		{"a script alone whose digest is another's", "R28", gate.PinGate, func(_ testing.TB, r *receiver) {
			r.alone("print(1)")
			r.d.Source = []byte("print(2)")
		}},

		{"a higher tier", "M09", gate.TierGate, d(func(d *gate.Delivery) { d.Tier = grant.Sandbox })},
		{"the runner's own least tier", "B2", gate.TierGate, own(func(r *gate.Reception) { r.MinTier = grant.VM })},
		{"a wall that the peer asks for", "B2", gate.TierGate, d(func(d *gate.Delivery) { d.RequireWalls = []string{"memory"} })},
		{"a wall that the runner asks for", "B2", gate.TierGate, own(func(r *gate.Reception) { r.RequireWalls = []string{"memory"} })},
		{"a tier that is only claimed", "M09", gate.TierGate, func(_ testing.TB, r *receiver) {
			r.d.Tier, r.Standing.Tier, r.Standing.Claimed = grant.Sandbox, grant.VM, true
		}},

		{"a timeout above the runner's", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Timeout = gate.DefaultMostTimeout + 1 })},
		{"no timeout", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Timeout = 0 })},
		{"a negative timeout", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Timeout = -1 })},
		{"output above the runner's", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.MaxOutput = gate.DefaultMostOutput + 1 })},
		{"no output", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.MaxOutput = 0 })},
		{"outputs above the runner's", "B5", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.MaxOutputs = gate.DefaultMaxOutputs + 1 })},
		{"memory above the runner's", "B10", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Memory = gate.DefaultMostMemory + 1 })},
		{"processes above the runner's", "B10", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Processes = gate.DefaultMostProcesses + 1 })},
		{"a network that the runner does not give", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Network = gate.Loopback })},
		{"a network that is none", "R28", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Network = "internet" })},
		{"a tier that is none", "B2", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Tier = "moon" })},
		{"a variable that steers the loader", "case 41", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Environment = map[string]string{"LD_PRELOAD": "x"} })},
		{"no mode", "B4", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Mode = "" })},
		{"words for a script that takes none", "B4", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Mode = gate.None })},
		{"standard input for a script that takes words", "B4", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Stdin = []byte("x") })},
		{"a word with NUL", "case 11", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Words = []string{"a\x00"} })},
		{"standard input above the limit", "R12", gate.ArgumentsGate, func(_ testing.TB, r *receiver) {
			r.alone("print(1)")
			r.reception.MaxArguments, r.d.Stdin = 3, []byte("1234")
		}},
		{"inputs above the limit", "B5", gate.ArgumentsGate, func(_ testing.TB, r *receiver) {
			r.reception.MaxInputs, r.d.Inputs = 3, []bundle.File{{Path: "a", Data: []byte("1234")}}
		}},
		{"an input that leads out", "B5", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.Inputs = []bundle.File{{Path: "../a"}} })},
		{"an output pattern that leads out", "B5", gate.ArgumentsGate, d(func(d *gate.Delivery) { d.OutputPatterns = []string{"../*"} })},
	}
}

// R8–R16 at the second door: it refuses in every way of the table under the gate's
// name, with one entry and no admission, and makes no history of a tenant that the
// peer may not name.
func TestDeliveryDenials(t *testing.T) {
	for _, name := range gate.Names() {
		t.Run(string(name), func(t *testing.T) {
			for _, c := range deliveryDenials() {
				if c.gate != name {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					r := newReceiver(t)
					c.change(t, r)
					req, err := r.gate().Accept(t.Context(), r.d, r.Standing)
					if req.Valid() {
						t.Fatalf("%s: it is accepted", c.rule)
					}
					d, ok := errors.AsType[*gate.Denial](err)
					if !ok || d.Gate != name || d.Err == nil || d.Remedy == "" {
						t.Fatalf("%s: got %v, want a denial of gate %s with a reason and a remedy", c.rule, err, name)
					}
					if n := len(entries(t, r.House, audit.Admission)); n != 0 {
						t.Errorf("the log has %d admissions", n)
					}
					refusals := entries(t, r.House, audit.Refusal)
					if len(refusals) != 1 || refusals[0].Fact("gate") != string(name) {
						t.Fatalf("the log has %+v, want one refusal of gate %s", refusals, name)
					}
					if e := refusals[0]; e.Tenant != gate.NoTenant && e.Tenant != gatecase.Tenant {
						t.Errorf("%s: the tenant %q has a history now", c.rule, e.Tenant)
					}
					for _, f := range refusals[0].Facts {
						if strings.Contains(f.Value, gatecase.Canary) {
							t.Errorf("the log holds a value of the arguments: %q", f.Value)
						}
					}
				})
			}
		})
	}
}

// What stands right beside each refusal is accepted, and the request carries what
// was delivered, under an id of this host.
func TestAccepts(t *testing.T) {
	tests := []struct {
		name   string
		change func(t testing.TB, r *receiver)
	}{
		{"as it is", func(testing.TB, *receiver) {}},
		{"R28: a script alone", func(_ testing.TB, r *receiver) { r.alone("print(1)") }},
		{"R20: a peer for every tenant", func(_ testing.TB, r *receiver) { r.d.Peer.Tenants, r.d.Peer.AllTenants = nil, true }},
		{"R28: everything at its limit", func(_ testing.TB, r *receiver) {
			r.d.Timeout, r.d.MaxOutput, r.d.Memory, r.d.Processes = gate.DefaultMostTimeout, gate.DefaultMostOutput, gate.DefaultMostMemory, gate.DefaultMostProcesses
			r.d.MaxOutputs, r.d.MaxOutputFiles = gate.DefaultMaxOutputs, gate.DefaultMaxOutputFiles
		}},
		{"B2: a wall that stands", func(_ testing.TB, r *receiver) {
			r.d.RequireWalls, r.Standing.Walls = []string{"memory"}, []gate.Wall{{Name: "memory", Stands: true}}
		}},
		{"R28: the network that the runner gives", func(_ testing.TB, r *receiver) { r.d.Network, r.reception.Network = gate.Loopback, gate.Loopback }},
		{"M11: a ticket", func(_ testing.TB, r *receiver) {
			r.d.Ticket, r.reception.RequireTicket = "good", true
			r.tickets = &booth{want: gate.Claim{Peer: r.d.Peer.Name, Tenant: r.d.Tenant, Run: r.d.Run, Digest: r.d.Digest, Request: r.d.Request}}
		}},
		{"B4: a module", func(_ testing.TB, r *receiver) { r.d.Module = "scripts.run" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t)
			tt.change(t, r)
			g := r.gate()
			req, err := g.Accept(t.Context(), r.d, r.Standing)
			if err != nil || !req.Valid() {
				t.Fatal(err)
			}
			admitted := entries(t, r.House, audit.Admission)
			if len(admitted) != 1 || len(entries(t, r.House, audit.Refusal)) != 0 {
				t.Fatalf("the log has %d admissions, want one and no refusal", len(admitted))
			}
			e := admitted[0]
			if e.ID != req.Receipt().ID() || e.Tenant != r.d.Tenant || e.Run != req.ID() || e.Actor != "control-plane" || e.Fact("peer") != "control-plane" ||
				e.Fact("toldRun") != r.d.Run || e.Fact("toldActor") != "told" || e.Fact("toldGrant") != "told-grant" || e.Fact("runtime") != "python-3.12" ||
				e.Fact("digest") != req.Digest().String() || e.Fact("instance") != "this-instance" {
				t.Errorf("the admission does not say who, what and where: %+v", e)
			}
			if req.ID() == r.d.Run || req.Tenant() != r.d.Tenant || req.ScriptDigest() != r.d.ScriptDigest || req.Timeout() != r.d.Timeout ||
				req.MaxOutputBytes() != r.d.MaxOutput || req.Extension() != "py" || req.Peer().Name != "control-plane" {
				t.Errorf("the request is not what was delivered: %v", req)
			}
			if err := g.Confirm(t.Context(), req); err != nil {
				t.Errorf("Confirm: %v", err)
			}
		})
	}
}

// R16: without its entry nothing is accepted, and what cannot be read is no refusal.
func TestAcceptFails(t *testing.T) {
	lost := errors.New("the tickets are lost")
	tests := []struct {
		name   string
		change func(r *receiver)
		want   error
	}{
		{"the log", func(r *receiver) { _ = r.Store.Close() }, audit.ErrUnavailable},
		{"the tickets", func(r *receiver) { r.d.Ticket, r.tickets = "good", &booth{err: lost} }, lost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t)
			tt.change(r)
			req, err := r.gate().Accept(t.Context(), r.d, r.Standing)
			if req.Valid() || !errors.Is(err, tt.want) || errors.Is(err, gate.ErrDenied) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// R8, R11: a gate that closed while the run waited for a slot refuses it.
func TestConfirmOfDeliveries(t *testing.T) {
	tests := []struct {
		name   string
		gate   gate.Name
		change func(r *gate.Reception)
	}{
		{"the runner was switched off", gate.SwitchGate, func(r *gate.Reception) { r.Enabled = false }},
		{"the runtime was taken away", gate.InterpreterGate, func(r *gate.Reception) { r.Runtimes = nil }},
		{"the runtime is another now", gate.InterpreterGate, func(r *gate.Reception) {
			in := r.Runtimes["python-3.12"]
			in.Interpreter.Digest = bundle.Sum([]byte("another"))
			r.Runtimes = map[string]gate.Runtime{"python-3.12": in}
		}},
		{"a wall is asked for now", gate.TierGate, func(r *gate.Reception) { r.RequireWalls = []string{"memory"} }},
	}
	gone := false
	tests = append(tests, struct {
		name   string
		gate   gate.Name
		change func(r *gate.Reception)
	}{"T11: the peer's key was revoked", gate.GrantGate, func(*gate.Reception) { gone = true }})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t)
			r.d.Peer.Still = func(context.Context) error {
				if gone {
					return gate.ErrDenied
				}
				return nil
			}
			req, err := r.gate().Accept(t.Context(), r.d, r.Standing)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(&r.reception)
			d, ok := errors.AsType[*gate.Denial](r.gate().Confirm(t.Context(), req))
			if !ok || d.Gate != tt.gate {
				t.Errorf("got %v, want a denial of gate %s", d, tt.gate)
			}
		})
	}
}

// A door that is not there is shut: a host that takes no deliveries accepts none,
// and one that takes deliveries alone admits no call.
func TestOneDoorIsNotTheOther(t *testing.T) {
	r := newReceiver(t)
	for name, try := range map[string]func() (gate.Request, error){
		"accept": func() (gate.Request, error) { return gate.New(r.Config).Accept(t.Context(), r.d, r.Standing) },
		"admit":  func() (gate.Request, error) { return r.gate().Admit(t.Context(), r.Call, r.Standing) },
	} {
		req, err := try()
		if d, ok := errors.AsType[*gate.Denial](err); req.Valid() || !ok || d.Gate != gate.SwitchGate {
			t.Errorf("%s: got %v, want a denial at the switch", name, err)
		}
	}
	if verdicts := r.gate().Explain(t.Context(), r.Call, r.Standing); verdicts[0].Answer != gate.No {
		t.Errorf("explain says %+v", verdicts[0])
	}
}

// R16: whatever is delivered, there is no Request without its admission, no Denial
// without its refusal, and no panic.
func FuzzAccept(f *testing.F) {
	f.Add(gatecase.Tenant, "python-3.12", "scripts/run.py", "argv", "x", []byte("pass"), int64(1e9), "", true)
	f.Add("", "/bin/sh", "../x", "stdin", "", []byte(nil), int64(-1), "vm", false)
	f.Add("@host", "python-3.12", "", "none", "\x00", []byte("\xff"), int64(1), "process", true)
	f.Fuzz(func(t *testing.T, tenant, runtime, script, mode, word string, data []byte, nanos int64, tier string, right bool) {
		r := newReceiver(t)
		r.d.Tenant, r.d.Runtime, r.d.Mode, r.d.Timeout, r.d.Tier = tenant, runtime, gate.Mode(mode), time.Duration(nanos), grant.Tier(tier)
		r.d.Words, r.d.Stdin, r.d.Inputs = []string{word}, data, []bundle.File{{Path: word, Data: data}}
		if right {
			r.d.Inputs = nil
		}
		if b, err := bundle.New([]bundle.File{{Path: script, Data: data}}, nil, bundle.Limits{}); err == nil && right {
			r.d.Script, r.d.Bundle, r.d.Digest, r.d.ScriptDigest = script, b, b.Digest(), bundle.Sum(data)
		}
		req, err := r.gate().Accept(t.Context(), r.d, r.Standing)
		admissions, refusals := entries(t, r.House, audit.Admission), entries(t, r.House, audit.Refusal)
		_, denied := errors.AsType[*gate.Denial](err)
		switch {
		case req.Valid() == (err != nil):
			t.Fatalf("valid: %t, error: %v", req.Valid(), err)
		case req.Valid() && (len(admissions) != 1 || len(refusals) != 0 || req.Tenant() != gatecase.Tenant):
			t.Fatalf("it is accepted for %q with %d admissions and %d refusals", req.Tenant(), len(admissions), len(refusals))
		case denied && (len(admissions) != 0 || len(refusals) != 1):
			t.Fatalf("it is refused with %d admissions and %d refusals", len(admissions), len(refusals))
		}
	})
}
