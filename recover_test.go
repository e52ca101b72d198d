package tracon_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

// admitted admits a call as the process instance, and leaves it there.
func admitted(t *testing.T, h *gatecase.House, instance string) gate.Request {
	t.Helper()
	h.Config.Instance = instance
	call := h.Call
	call.ID = id.New()
	req, err := gate.New(h.Config).Admit(t.Context(), call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// endings tells the ending of each run in the log, and how many it has.
func endings(t *testing.T, log *audit.Log) (map[string]string, map[string]int) {
	t.Helper()
	how, n := map[string]string{}, map[string]int{}
	for leaf, err := range log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e := leaf.Entry; e.Kind == audit.Ending {
			how[e.Run], n[e.Run] = e.Fact("ending"), n[e.Run]+1
		}
	}
	return how, n
}

// I5: what a dead process admitted and did not end is closed as unknown, once,
// with its record; what ended, and what another process admitted, is left alone.
func TestRecover(t *testing.T) {
	h := gatecase.New(t)
	ended := admitted(t, h, "dead")
	left := admitted(t, h, "dead")
	living := admitted(t, h, "living")
	if _, err := gate.New(h.Config).End(t.Context(), ended, "exited", nil, nil); err != nil {
		t.Fatal(err)
	}
	counted := audit.Entry{ID: id.New(), Tenant: gatecase.Tenant, Kind: audit.Refusal, Subject: "counted", Count: 41}
	for round, want := range []int{1, 0} {
		n, err := tracon.Recover(t.Context(), h.Log, h.Store, tracon.Dead{Instance: "dead", Counted: []audit.Entry{counted}})
		if err != nil || n != want {
			t.Errorf("round %d: closed %d, %v; want %d", round, n, err, want)
		}
	}
	how, n := endings(t, h.Log)
	if how[left.ID()] != "unknown" || n[left.ID()] != 1 || how[ended.ID()] != "exited" || n[ended.ID()] != 1 || how[living.ID()] != "" {
		t.Errorf("the endings are %v, %v", how, n)
	}
	r, err := h.Store.Call(t.Context(), gatecase.Tenant, left.ID())
	if err != nil || r.Ending != "unknown" || r.Script != left.Script() || r.Skill != left.Skill() || r.Digest != left.Digest() ||
		r.ScriptDigest != left.ScriptDigest() || r.Grant != left.GrantID() || r.AdmissionIndex != left.Receipt().Index() ||
		r.ArgumentsBytes != len(left.Arguments()) || len(r.Notes) != 1 || r.Tier != string(h.Standing.Tier) {
		t.Errorf("the record is %+v, %v", r, err)
	}
	total := uint64(0)
	for leaf, err := range h.Log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Subject == "counted" {
			total += leaf.Entry.Count
		}
	}
	if total != 41 {
		t.Errorf("%d refusals were counted, want 41", total)
	}
	if _, err := h.Log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// I5: an admission of a host of which nothing is left is closed as unknown, once, with
// the reason; that of a host which is known, and what its host ended, is left alone,
// also where the log was looked through up to the middle.
func TestSettle(t *testing.T) {
	h := gatecase.New(t)
	ended := admitted(t, h, "gone")
	left := admitted(t, h, "gone")
	living := admitted(t, h, "living")
	h.Config.Instance = "gone"
	if _, err := gate.New(h.Config).End(t.Context(), ended, "exited", nil, nil); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{"living": true}
	known := func(_ context.Context, instance string) (bool, error) { return hosts[instance], nil }
	var w tracon.Watch
	settle := func(want int) {
		t.Helper()
		was := w
		var n int
		var err error
		if w, n, err = tracon.Settle(t.Context(), h.Log, h.Store, w, known); err != nil || n != want {
			t.Errorf("from %+v: closed %d, %v; want %d", was, n, err, want)
		}
	}
	settle(1)
	settle(0)
	if len(w.Open) != 1 || w.Open[0] != living.Receipt().Index() {
		t.Errorf("it goes on from %+v, want with the call of the living", w)
	}
	how, n := endings(t, h.Log)
	if how[left.ID()] != "unknown" || n[left.ID()] != 1 || how[ended.ID()] != "exited" || n[ended.ID()] != 1 || n[living.ID()] != 0 {
		t.Errorf("the endings are %v, %v", how, n)
	}
	if r, err := h.Store.Call(t.Context(), gatecase.Tenant, left.ID()); err != nil || r.Ending != "unknown" || len(r.Notes) != 1 {
		t.Errorf("the record is %+v, %v", r, err)
	}
	// The sign of a host that lived goes, once with and once without the ending of its call.
	later := admitted(t, h, "living")
	h.Config.Instance = "living"
	if _, err := gate.New(h.Config).End(t.Context(), living, "exited", nil, nil); err != nil {
		t.Fatal(err)
	}
	delete(hosts, "living")
	settle(1)
	settle(0)
	how, n = endings(t, h.Log)
	if how[living.ID()] != "exited" || n[living.ID()] != 1 || how[later.ID()] != "unknown" || n[later.ID()] != 1 || w.Open != nil {
		t.Errorf("then the endings are %v, %v, and it goes on from %+v", how, n, w)
	}
	// A host that ends its call between the look at the log and at the hosts.
	last := admitted(t, h, "last")
	known = func(context.Context, string) (bool, error) {
		_, err := gate.New(h.Config).End(t.Context(), last, "exited", nil, nil)
		return false, err
	}
	settle(0)
	gaveUp := errors.New("gave up")
	admitted(t, h, "another")
	if _, _, err := tracon.Settle(t.Context(), h.Log, h.Store, w, func(context.Context, string) (bool, error) { return false, gaveUp }); !errors.Is(err, gaveUp) {
		t.Errorf("when the hosts cannot be asked: got %v", err)
	}
}

// Two calls that came with one id have two endings; without a store of records
// the log alone has them.
func TestRecoverSameID(t *testing.T) {
	for _, calls := range []bool{true, false} {
		h := gatecase.New(t)
		h.Config.Instance = "dead"
		h.Call.ID = id.New()
		for range 2 {
			if _, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing); err != nil {
				t.Fatal(err)
			}
		}
		var st toolcall.Store
		if calls {
			st = h.Store
		}
		n, err := tracon.Recover(t.Context(), h.Log, st, tracon.Dead{Instance: "dead"})
		if _, count := endings(t, h.Log); err != nil || n != 2 || count[h.Call.ID] != 2 {
			t.Errorf("closed %d, %v; the log has %v", n, err, count)
		}
	}
}

// A log that cannot be read or written is an error: nothing is passed over.
func TestRecoverFails(t *testing.T) {
	h := gatecase.New(t)
	admitted(t, h, "dead")
	if _, err := tracon.Recover(t.Context(), h.Log, h.Store, tracon.Dead{}); err == nil {
		t.Error("without an instance: no error")
	}
	if err := h.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tracon.Recover(t.Context(), h.Log, h.Store, tracon.Dead{Instance: "dead"}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want the store's error", err)
	}
}

// overtaken is a store in which another host closes the run first.
type overtaken struct {
	toolcall.Store
	first func()
}

func (o *overtaken) AddCall(ctx context.Context, r toolcall.Record, p audit.Pending) error {
	if f := o.first; f != nil {
		o.first = nil
		f()
	}
	return o.Store.AddCall(ctx, r, p)
}

// I5: two hosts that close what a third one left write one ending between them.
func TestRecoverTwice(t *testing.T) {
	h := gatecase.New(t)
	left := admitted(t, h, "dead")
	dead := tracon.Dead{Instance: "dead"}
	again := &overtaken{h.Store, func() {
		if n, err := tracon.Recover(t.Context(), h.Log, h.Store, dead); err != nil || n != 1 {
			t.Errorf("the other host closed %d, %v", n, err)
		}
	}}
	_, err := tracon.Recover(t.Context(), audit.NewLog(h.Store), again, dead)
	if how, n := endings(t, h.Log); err != nil || again.first != nil || how[left.ID()] != "unknown" || n[left.ID()] != 1 {
		t.Errorf("error %v, and the endings are %v, %v", err, how, n)
	}
}
