package admin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// A runtime's name is given, taken over and taken away by operator acts, each
// with its entry; what changes nothing has none.
func TestRuntimes(t *testing.T) {
	d := newDesk(t)
	old, fresh := bundle.Sum([]byte("old")), bundle.Sum([]byte("new"))
	naming := admin.Naming{Actor: "op", Name: "python-3.12", Digest: old, Reason: "first"}
	for range 2 { // the second changes nothing
		if _, err := d.NameRuntime(t.Context(), naming); err != nil {
			t.Fatal(err)
		}
	}
	naming.Digest = fresh
	if _, err := d.NameRuntime(t.Context(), naming); !errors.Is(err, admin.ErrNamed) || !errors.Is(err, grant.ErrConflict) {
		t.Errorf("a name that is taken: %v, want ErrNamed", err)
	}
	naming.Replace = true
	if before, err := d.NameRuntime(t.Context(), naming); err != nil || before != old {
		t.Errorf("replaced %s, %v; want %s", before, err, old)
	}
	for name, bad := range map[string]admin.Naming{
		"a name that is a path": {Actor: "op", Name: "../x", Digest: old},
		"no name":               {Actor: "op", Digest: old},
		"no digest":             {Actor: "op", Name: "x"},
	} {
		if _, err := d.NameRuntime(t.Context(), bad); !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("%s: %v, want ErrPolicy", name, err)
		}
	}
	list := func(in gate.Interpreter) {
		t.Helper()
		if _, err := d.SetHost(t.Context(), "op", func(h *gate.Host) error {
			h.Interpreters = map[string]gate.Interpreter{"py": in}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	list(gate.Interpreter{Name: "python-3.12", Path: "/usr/bin/python3", Digest: old, Image: fresh})
	if _, err := d.RemoveRuntime(t.Context(), "op", "python-3.12", ""); !errors.Is(err, admin.ErrListed) || !strings.Contains(err.Error(), "py") {
		t.Errorf("while the allow-list names it: %v, want ErrListed with the extension", err)
	}
	list(gate.Interpreter{Path: "/usr/bin/python3"})
	if meant, err := d.RemoveRuntime(t.Context(), "op", "python-3.12", "over"); err != nil || meant != fresh {
		t.Errorf("removed %s, %v; want %s", meant, err, fresh)
	}
	if _, err := d.RemoveRuntime(t.Context(), "op", "python-3.12", ""); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("removed twice: %v, want ErrNotFound", err)
	}
	if got, want := d.kinds(t), "runtime runtime host host runtime"; got != want {
		t.Errorf("log has %q, want %q", got, want)
	}
	var second audit.Entry
	for leaf, err := range d.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Fact("act") == "named" {
			second = leaf.Entry
		}
	}
	if second.Subject != "runtime python-3.12" || second.Fact("replaces") != old.String() || second.Fact("digest") != fresh.String() || second.Tenant != gate.HostTenant {
		t.Errorf("the entry is %+v", second)
	}
	if _, err := d.log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A configuration file's allow-list keeps a runtime as the store's does.
func TestRuntimeListedElsewhere(t *testing.T) {
	d := newDesk(t)
	root := bundle.Sum([]byte("root"))
	a := admin.New(admin.Config{Store: d.st, Log: d.log, Contents: d.in, Hosts: gate.Static{Interpreters: map[string]gate.Interpreter{
		"sh": {Name: "small", Path: "/bin/sh", Image: root},
	}}})
	if _, err := a.NameRuntime(t.Context(), admin.Naming{Actor: "op", Name: "small", Digest: root}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.RemoveRuntime(t.Context(), "op", "small", ""); !errors.Is(err, admin.ErrListed) {
		t.Errorf("err = %v, want ErrListed", err)
	}
}
