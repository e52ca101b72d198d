package limit

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	from  = "192.0.2.1:1000"
	again = "192.0.2.1:2000" // the same machine
	other = "192.0.2.2:1000"
)

// guess sends n credentials that do not hold, and returns how many were looked at.
func guess(f *Failures, address string, formed bool, n int) (looked int) {
	for i := range n {
		credential := fmt.Sprint("guess ", i)
		release, after := f.Check(address, credential, formed)
		if after == 0 {
			looked++
			f.Failed(address, credential, formed)
			release()
		}
	}
	return looked
}

// later is when the credential is looked at, which it is where that is zero.
func later(f *Failures, address, credential string, formed bool) time.Duration {
	release, after := f.Check(address, credential, formed)
	if after == 0 {
		release()
	}
	return after
}

// W03: guesses side by side are bounded as those one after another: what is being looked
// at counts as if it had failed, and no longer where it held or nobody could find out.
func TestFailuresSideBySide(t *testing.T) { synctest.Test(t, sideBySide) } // no time passes

func sideBySide(t *testing.T) {
	f := NewFailures(slog.New(slog.DiscardHandler))
	f.Held("of the owner")
	var all []func()
	for i := range 500 {
		if release, after := f.Check(from, fmt.Sprint("guess ", i), true); after == 0 {
			all = append(all, release)
		}
	}
	if len(all) != FailedBurst {
		t.Fatalf("%d guesses are looked at, want %d", len(all), FailedBurst)
	}
	for _, tt := range []struct {
		name, address, credential string
		formed, looked            bool
	}{
		{"one more", again, "a new guess", true, false},
		{"the same again", from, "guess 0", true, true},
		{"what held before", from, "of the owner", true, true},
		{"garbage", from, "x", false, true},
		{"another machine's", other, "a new guess", true, true},
	} {
		if looked := later(f, tt.address, tt.credential, tt.formed) == 0; looked != tt.looked {
			t.Errorf("%s: looked at %v, want %v", tt.name, looked, tt.looked)
		}
	}
	const failed = 5
	for i, release := range all {
		if i < failed {
			f.Failed(from, fmt.Sprint("guess ", i), true)
		}
		release()
	}
	if n := len(f.looking); n != 0 {
		t.Errorf("%d are looked at when all are done", n)
	}
	if looked := guess(f, from, true, 500); looked != FailedBurst-failed {
		t.Errorf("after %d that failed %d more were looked at, want %d", failed, looked, FailedBurst-failed)
	}
}

// W03: a machine that guesses is told to come later before anybody looks; others are
// not, nor who held before from the same address; and with time it may try again.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFailures(slog.New(slog.DiscardHandler))
		f.Held("of the owner")
		if looked := guess(f, from, true, 1000); looked != FailedBurst {
			t.Errorf("%d guesses were looked at, want %d", looked, FailedBurst)
		}
		if after := later(f, again, "a new guess", true); after != FailedEvery {
			t.Errorf("over another connection: %v, want %v", after, FailedEvery)
		}
		if later(f, other, "a new guess", true) != 0 {
			t.Error("another machine's was not looked at")
		}
		if later(f, from, "of the owner", true) != 0 {
			t.Error("who held before is locked out")
		}
		f.Failed(from, "of the owner", true) // revoked
		if later(f, from, "of the owner", true) == 0 {
			t.Error("what holds no longer is looked at as if it did")
		}
		time.Sleep(3 * FailedEvery)
		if looked := guess(f, from, true, 1000); looked != 3 {
			t.Errorf("after %v %d were looked at, want 3", 3*FailedEvery, looked)
		}
	})
}

// W03: what could never hold locks out nobody who has a key that was not seen before.
func TestFormlessFailures(t *testing.T) {
	f := NewFailures(slog.New(slog.DiscardHandler))
	guess(f, from, false, 1000)
	if later(f, from, "x", false) == 0 {
		t.Error("garbage is looked at without an end")
	}
	if later(f, from, "a key", true) != 0 {
		t.Error("a key is not looked at, since garbage came")
	}
}

// W03: networks of IPv6 are one machine; addresses that are none are one; and however
// many there are, what is remembered is bounded, with those who failed last.
func TestFailuresAreBounded(t *testing.T) {
	f := NewFailures(slog.New(slog.DiscardHandler))
	guess(f, "[2001:db8::1]:1", true, FailedBurst)
	if later(f, "[2001:db8::2]:1", "x", true) == 0 || later(f, "[2001:db8:0:1::1]:1", "x", true) != 0 {
		t.Error("machines of IPv6 are not told apart by 64 bits")
	}
	guess(f, "@", true, FailedBurst)
	if later(f, "", "x", true) == 0 {
		t.Error("what has no address is nobody")
	}
	if f.machines.most != MaxMachines || f.held.most != MaxHeld {
		t.Errorf("%d machines and %d credentials are remembered, want %d and %d", f.machines.most, f.held.most, MaxMachines, MaxHeld)
	}
	const most = 100
	f.machines.most, f.held.most = most, most
	for i := range 10 * most {
		guess(f, fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), true, 1)
		f.Held(fmt.Sprint("held ", i))
		if i%(most/2) == 0 {
			guess(f, from, true, FailedBurst)
		}
	}
	if n, m := len(f.machines.at), f.machines.used.Len(); n != most || m != n {
		t.Errorf("%d machines are remembered, %d in the list; want %d", n, m, most)
	}
	if n, m := len(f.held.at), f.held.used.Len(); n != most || m != n {
		t.Errorf("%d credentials are remembered, %d in the list; want %d", n, m, most)
	}
	if later(f, from, "x", true) == 0 {
		t.Error("who guesses all the time was forgotten")
	}
}

// W03: a flood is one line at once, and one a minute with the count; no credential
// stands in them.
func TestFailuresAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := NewFailures(slog.New(slog.NewTextHandler(&log, nil)))
		guess(f, from, false, FailedBurst)
		if log.Len() != 0 {
			t.Errorf("told before anything was refused: %s", log.String())
		}
		guess(f, from, false, 500)
		time.Sleep(tellEvery)
		synctest.Wait()
		time.Sleep(10 * tellEvery)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "count=1 last=192.0.2.1/32") || !strings.Contains(lines[1], "count=499") || strings.Contains(log.String(), "guess") {
			t.Errorf("told:\n%s", log.String())
		}
	})
}
