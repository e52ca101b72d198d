package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/wire"
)

// B8: whoever has scripts run elsewhere is told what to do about a run that was not
// started: which setting, of which side. Of one that may have run nothing is said.
func TestRemedy(t *testing.T) {
	refused := func(status int, code string) error {
		return &remote.Error{Kind: remote.Refused, Status: status, Code: code}
	}
	unreachable := func(err error) error { return &remote.Error{Kind: remote.Unreachable, Err: err} }
	for _, tt := range []struct {
		name, executor string
		err            error
		says           string // empty: nothing is said
	}{
		{"a wrong key", "remote", refused(401, ""), "remote_key_file"},
		{"another tenant, or a clock", "remote", refused(403, "grant"), "clocks"},
		{"switched off", "remote", refused(403, "switch"), "enabled: true"},
		{"no such runtime", "remote", refused(422, "interpreter"), "runtimes"},
		{"a low tier", "remote", refused(422, "tier"), "walls"},
		{"no room", "remote", &remote.Error{Kind: remote.Busy, Status: 503, Code: "draining"}, "slots"},
		{"a stranger's certificate", "remote", unreachable(x509.UnknownAuthorityError{}), "remote_ca"},
		{"another name", "remote", unreachable(x509.HostnameError{}), "as its certificate does"},
		{"an old certificate", "remote", unreachable(x509.CertificateInvalidError{Reason: x509.Expired}), "renew tls_cert"},
		{"an old certificate of ours", "remote", unreachable(tls.AlertError(45)), "remote_cert"},
		{"nobody", "remote", unreachable(errors.New("refused")), "tracon runner serve"},
		{"what cannot be sent", "remote", &remote.Error{Kind: remote.Unsendable, Detail: "it takes no files"}, "mend what the sentence names"},
		{"it may have run", "remote", &remote.Error{Kind: remote.HungUp, Unknown: true}, ""},
		{"no runner", "fleet", fleet.ErrNoRunner, "fleet_tenants"},
		{"no place", "fleet", fleet.ErrNoPlace, "more runners"},
		{"no pool", "fleet", fleet.ErrNoPool, "fleet_pools"},
		{"a runner is lost", "fleet", fleet.ErrLost, ""},
		{"here", "process", executor.ErrUnavailable, ""},
	} {
		h := &House{Config: &config.Config{Executor: tt.executor}}
		got := h.Remedy(fmt.Errorf("%w: %w", tracon.ErrExecutorUnavailable, tt.err)) // as a Runner tells it
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.says)
		}
	}
}

// M09: two processes of one name are told of, as their tickets could be used at either.
func TestTwoRunnersOfOneName(t *testing.T) {
	h := &House{Config: &config.Config{Fleet: config.Fleet{Tier: "process", TicketKey: "key"}}}
	one := wire.Info{Name: "r1", Tier: "process", Slots: 1}
	seen := fleet.Seen{Runners: []fleet.Runner{{Member: "a", Info: one}, {Member: "b", Info: one}, {Member: "c", Info: wire.Info{Name: "r2", Tier: "process", Slots: 1}}}}
	if s := h.seenPool(seen, nil); !s.OK || !strings.Contains(s.Remedy, "two processes are called r1: ") {
		t.Errorf("told: %+v", s)
	}
	seen.Runners = seen.Runners[1:]
	if s := h.seenPool(seen, nil); !s.OK || s.Remedy != "" {
		t.Errorf("told: %+v", s)
	}
}
