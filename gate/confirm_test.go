package gate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// Case 46: what closed while the call waited for a slot stops it. What was
// opened again, or never mattered, does not.
func TestConfirm(t *testing.T) {
	denied := []struct {
		name   string
		gate   gate.Name
		change func(t testing.TB, h *gatecase.House)
	}{
		{"the host is switched off", gate.SwitchGate, func(t testing.TB, h *gatecase.House) { h.Host(t, func(h *gate.Host) { h.Enabled = false }) }},
		{"the tenant is switched off", gate.SwitchGate, func(t testing.TB, h *gatecase.House) { h.Policy(t, func(p *gate.Policy) { p.Enabled = false }) }},
		{"the platform switches the tenant off", gate.SwitchGate, func(t testing.TB, h *gatecase.House) { h.SwitchOff(t) }},
		{"the grant is revoked", gate.GrantGate, func(t testing.TB, h *gatecase.House) { h.Revoke(t, nil) }},
		{"the grant expires", gate.GrantGate, func(t testing.TB, h *gatecase.House) { time.Sleep(time.Hour) }},
		{"the script gets a grant of its own, which is revoked", gate.GrantGate, func(t testing.TB, h *gatecase.House) {
			h.Grant(t, func(g *grant.Grant) { g.Ref.Script, g.Ref.AllScripts = "", true })
			h.Revoke(t, nil)
		}},
		{"the script is granted with another pin", gate.PinGate, func(t testing.TB, h *gatecase.House) {
			h.Skills.Of(gatecase.Skill).Put("new", "")
			h.Grant(t, nil)
		}},
		{"the host's allow-list loses the interpreter", gate.InterpreterGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { delete(h.Interpreters, "py") })
		}},
		{"the tenant's allow-list loses the interpreter", gate.InterpreterGate, func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.Interpreters = []string{"sh"} })
		}},
		{"the interpreter is another file", gate.InterpreterGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) {
				in := h.Interpreters["py"]
				in.Digest = bundle.Sum([]byte("another python3"))
				h.Interpreters["py"] = in
			})
		}},
		{"the interpreter is another one", gate.InterpreterGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.Interpreters["py"] = gate.Interpreter{Name: "python-3.13"} })
		}},
		{"the interpreter is in another runtime", gate.InterpreterGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) {
				h.Interpreters["py"] = gate.Interpreter{Name: "python-3.12", Path: h.Interpreters["py"].Path, Digest: h.Interpreters["py"].Digest, Image: bundle.Sum([]byte("root"))}
			})
		}},
		{"the host's network is narrowed", gate.SwitchGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.Network = "" })
		}},
		{"the tenant's network is narrowed", gate.SwitchGate, func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.Network = gate.NoNetwork })
		}},
		{"the policy asks for a higher tier", gate.TierGate, func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.MinTier = grant.Sandbox })
		}},
		{"the policy asks for a wall", gate.TierGate, func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.RequireWalls = []string{"memory"} })
		}},
		{"the host asks for a wall", gate.TierGate, func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.RequireWalls = []string{"memory"} })
		}},
		{"a new grant asks for a higher tier", gate.TierGate, func(t testing.TB, h *gatecase.House) {
			h.Grant(t, func(g *grant.Grant) { g.MinTier = grant.VM })
		}},
	}
	admitted := func(t *testing.T, expires time.Duration) (*gatecase.House, *gate.Gate, gate.Request) {
		t.Helper()
		h := gatecase.New(t)
		h.Grant(t, func(g *grant.Grant) { g.Expires = time.Now().Add(expires) })
		h.Host(t, func(h *gate.Host) { h.Network = gate.Loopback })
		h.Policy(t, func(p *gate.Policy) { p.Network = gate.Loopback })
		g := gate.New(h.Config)
		req, err := g.Admit(t.Context(), h.Call, h.Standing)
		if err != nil {
			t.Fatal(err)
		}
		return h, g, req
	}
	for _, tt := range denied {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, g, req := admitted(t, time.Hour)
				if err := g.Confirm(t.Context(), req); err != nil {
					t.Fatalf("before the change: %v", err)
				}
				tt.change(t, h)
				err := g.Confirm(t.Context(), req)
				if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != tt.gate {
					t.Errorf("got %v, want a refusal of gate %s", err, tt.gate)
				}
				if n := len(entries(t, h, audit.Refusal)); n != 0 {
					t.Errorf("Confirm wrote %d refusals; what came of an admitted call is an ending", n)
				}
			})
		})
	}

	for _, tt := range []struct {
		name   string
		change func(t testing.TB, h *gatecase.House)
	}{
		{"nothing", func(testing.TB, *gatecase.House) {}},
		{"the script is granted again with the same pin", func(t testing.TB, h *gatecase.House) { h.Revoke(t, nil); h.Grant(t, nil) }},
		{"another script's grant is revoked", func(t testing.TB, h *gatecase.House) {
			other := func(r *grant.Ref) { r.Script = "scripts/free.py" }
			h.Grant(t, func(g *grant.Grant) { other(&g.Ref) })
			h.Revoke(t, other)
		}},
		{"the skill's files change: the Request carries its own", func(_ testing.TB, h *gatecase.House) { h.Skills.Of(gatecase.Skill).Gone = true }},
		{"the last instant of the grant", func(testing.TB, *gatecase.House) { time.Sleep(time.Hour - time.Microsecond) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, g, req := admitted(t, time.Hour)
				tt.change(t, h)
				if err := g.Confirm(t.Context(), req); err != nil {
					t.Errorf("got %v, want it to pass", err)
				}
			})
		})
	}

	t.Run("what cannot be read", func(t *testing.T) {
		h, _, req := admitted(t, time.Hour)
		disk := unreadable{errors.New("disk")}
		for name, change := range map[string]func(*gate.Config){
			"host": func(c *gate.Config) { c.Hosts = disk }, "policy": func(c *gate.Config) { c.Policies = disk }, "grant": func(c *gate.Config) { c.Grants = disk },
		} {
			c := h.Config
			change(&c)
			if err := gate.New(c).Confirm(t.Context(), req); !errors.Is(err, disk.err) || errors.Is(err, gate.ErrDenied) {
				t.Errorf("%s: got %v, want the source's error", name, err)
			}
		}
	})

	t.Run("the caller has left", func(t *testing.T) {
		_, g, req := admitted(t, time.Hour)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := g.Confirm(ctx, req); err != gone {
			t.Errorf("got %v, want the cause alone", err)
		}
	})

	t.Run("the zero Request", func(t *testing.T) {
		h := gatecase.New(t)
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("it panics: %v", p)
			}
		}()
		if err := gate.New(h.Config).Confirm(t.Context(), gate.Request{}); err == nil {
			t.Error("it passes")
		}
	})
}

// T11: who may call no longer when the call has its slot has it refused; and where that
// cannot be found out nothing runs either. It is asked once the slot is there, not before.
func TestConfirmAsksTheCaller(t *testing.T) {
	unread := errors.New("the store is away")
	for _, tt := range []struct {
		name string
		says error
		want func(error) bool
	}{
		{"he may", nil, func(err error) bool { return err == nil }},
		{"he may no longer", fmt.Errorf("%w: revoked", gate.ErrDenied), func(err error) bool {
			d, ok := errors.AsType[*gate.Denial](err)
			return ok && d.Gate == gate.GrantGate
		}},
		{"it cannot be found out", unread, func(err error) bool { return errors.Is(err, unread) && !errors.Is(err, gate.ErrDenied) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := gatecase.New(t)
			asked := 0
			h.Call.Still = func(context.Context) error { asked++; return tt.says }
			req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
			if err != nil || asked != 0 {
				t.Fatalf("asked %d times before the slot, %v", asked, err)
			}
			if err := gate.New(h.Config).Confirm(t.Context(), req); !tt.want(err) || asked != 1 {
				t.Errorf("asked %d times: %v", asked, err)
			}
		})
	}
}

// Case 57: a log that failed while the call waited for a slot stops it: nothing
// runs from then on, and it is no refusal of the call.
func TestConfirmAfterTheLogFailed(t *testing.T) {
	h := gatecase.New(t)
	req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}
	h.Config.Log = audit.NewLog(brokenLog{Sink: h.Store, err: errors.New("disk full")})
	g := gate.New(h.Config)
	for name, err := range map[string]error{"Confirm": g.Confirm(t.Context(), req), "Ready": g.Ready(t.Context())} {
		if !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, gate.ErrDenied) {
			t.Errorf("%s says %v, want audit.ErrUnavailable and no denial", name, err)
		}
	}
}
