package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/memstore"
)

// folder is a gate.Contents of one skill "s", whose files change as a folder's do.
type folder struct {
	mu    sync.Mutex
	files []bundle.File
}

func (f *folder) Find(_ context.Context, _, skill, script string) (gate.Origin, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.files {
		if skill == "s" && file.Path == script {
			return gate.FileScript, nil
		}
	}
	return 0, gate.ErrUnknown
}

func (f *folder) Read(_ context.Context, _, skill string, l bundle.Limits) (bundle.Bundle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if skill != "s" {
		return bundle.Bundle{}, gate.ErrUnknown
	}
	return bundle.New(f.files, nil, l)
}

func (f *folder) write(path, data string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.files {
		if f.files[i].Path == path {
			f.files[i].Data = []byte(data)
			return
		}
	}
	f.files = append(f.files, bundle.File{Path: path, Data: []byte(data)})
}

type desk struct {
	*admin.Admin
	st  *memstore.Store
	log *audit.Log
	in  *folder
}

func newDesk(t *testing.T) desk {
	t.Helper()
	st := memstore.New()
	log := audit.NewLog(st)
	in := &folder{}
	in.write("SKILL.md", "# s")
	in.write("a.py", "print(1)")
	return desk{admin.New(admin.Config{Store: st, Log: log, Hosts: st, Contents: in}), st, log, in}
}

func (d desk) digest(t *testing.T) bundle.Digest {
	t.Helper()
	b, err := d.in.Read(t.Context(), "t", "s", bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b.Digest()
}

func (d desk) kinds(t *testing.T) string {
	t.Helper()
	var kinds []string
	for leaf, err := range d.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(leaf.Entry.Kind))
	}
	return strings.Join(kinds, " ")
}

var script = grant.Ref{Tenant: "t", Skill: "s", Script: "a.py"}

func (d desk) granting(t *testing.T) admin.Granting {
	return admin.Granting{Actor: "op", Ref: script, Digest: d.digest(t), MinTier: grant.Process}
}

// B11: what was reviewed is granted, its content is kept, and a later
// difference can be shown.
func TestReviewGrantDiff(t *testing.T) {
	d := newDesk(t)
	r, err := d.Review(t.Context(), script)
	if err != nil || r.Granted.ID != "" || r.Content.Digest() != d.digest(t) {
		t.Fatalf("Review before a grant = %+v, %v", r, err)
	}
	g, err := d.Grant(t.Context(), d.granting(t))
	if err != nil {
		t.Fatal(err)
	}
	d.in.write("SKILL.md", "# s\nchanged\n")
	d.in.write("new.py", "")
	r, err = d.Review(t.Context(), script)
	if err != nil || r.Granted.ID != g.ID {
		t.Fatalf("Review = %+v, %v; want grant %s", r.Granted, err, g.ID)
	}
	var got []string
	for _, c := range r.Changes {
		got = append(got, fmt.Sprintf("%s %s %q %q", c.Kind(), c.Path, c.Old, c.New))
	}
	if want := `[changed SKILL.md "# s" "# s\nchanged\n" added new.py "" ""]`; fmt.Sprint(got) != want {
		t.Errorf("changes = %v, want %s", got, want)
	}
	if got := d.kinds(t); got != "grant" {
		t.Errorf("log has %q, want one grant", got)
	}
}

// Case 44: when the bytes have changed since they were reviewed, nothing is
// granted, and the refusal does not hand out the new digest.
func TestChangedSinceReview(t *testing.T) {
	d := newDesk(t)
	g := d.granting(t)
	d.in.write("a.py", "import os")
	_, err := d.Grant(t.Context(), g)
	if !errors.Is(err, admin.ErrChanged) || !errors.Is(err, grant.ErrConflict) {
		t.Errorf("err = %v, want ErrChanged", err)
	}
	if strings.Contains(fmt.Sprint(err), d.digest(t).Hex()[:12]) {
		t.Errorf("the refusal hands out the new digest: %v", err)
	}
	if d.kinds(t) != "" {
		t.Errorf("log has %q, want nothing", d.kinds(t))
	}
	if grants, _ := d.Grants(t.Context(), "t", grant.Filter{}); len(grants) != 0 {
		t.Errorf("granted: %v", grants)
	}
}

// A digest must be named: the zero one grants nothing.
func TestGrantNeedsADigest(t *testing.T) {
	d := newDesk(t)
	g := d.granting(t)
	g.Digest = bundle.Digest{}
	if _, err := d.Grant(t.Context(), g); !errors.Is(err, admin.ErrChanged) {
		t.Errorf("err = %v, want ErrChanged", err)
	}
}

// A grant in force that pins other content is replaced only when that is said.
func TestReplace(t *testing.T) {
	d := newDesk(t)
	if _, err := d.Grant(t.Context(), d.granting(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Grant(t.Context(), d.granting(t)); err != nil {
		t.Errorf("the same content again: %v; want it granted", err)
	}
	d.in.write("a.py", "print(2)")
	g := d.granting(t)
	if _, err := d.Grant(t.Context(), g); !errors.Is(err, admin.ErrPinned) {
		t.Errorf("err = %v, want ErrPinned", err)
	}
	g.Replace = true
	made, err := d.Grant(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if newest, err := d.st.Grant(t.Context(), script); err != nil || newest.ID != made.ID {
		t.Errorf("newest = %+v, %v; want %s", newest, err, made.ID)
	}
}

// A grant says what it covers: what names nothing is an error and leaves no trace.
func TestGrantMistakes(t *testing.T) {
	tests := []struct {
		name   string
		change func(*admin.Granting)
		is     error
	}{
		{"blank script", func(g *admin.Granting) { g.Ref.Script = "" }, grant.ErrRef},
		{"script and all scripts", func(g *admin.Granting) { g.Ref.AllScripts = true }, grant.ErrRef},
		{"blank skill", func(g *admin.Granting) { g.Ref.Skill = "" }, grant.ErrRef},
		{"blank tenant", func(g *admin.Granting) { g.Ref.Tenant = "" }, grant.ErrRef},
		{"the host's own history", func(g *admin.Granting) { g.Ref.Tenant = gate.HostTenant }, grant.ErrRef},
		{"unknown script", func(g *admin.Granting) { g.Ref.Script = "b.py" }, gate.ErrUnknown},
		{"unknown skill", func(g *admin.Granting) { g.Ref.Skill = "other" }, gate.ErrUnknown},
		{"no tier", func(g *admin.Granting) { g.MinTier = "" }, nil},
		{"no such tier", func(g *admin.Granting) { g.MinTier = "castle" }, nil},
		{"expires before it begins", func(g *admin.Granting) { g.Expires = time.Now().Add(-time.Hour) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			g := d.granting(t)
			tt.change(&g)
			_, err := d.Grant(t.Context(), g)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("err = %v, want %v", err, tt.is)
			}
			if d.kinds(t) != "" {
				t.Errorf("log has %q, want nothing", d.kinds(t))
			}
		})
	}
}

// A change and its entry stand together: one entry for each change, none for
// what changed nothing or failed.
func TestEveryChangeHasItsEntry(t *testing.T) {
	d := newDesk(t)
	g, err := d.Grant(t.Context(), d.granting(t))
	if err != nil {
		t.Fatal(err)
	}
	on := func(p *gate.Policy) error { p.Enabled = true; return nil }
	for range 2 { // the second one changes nothing
		if _, err := d.SetPolicy(t.Context(), "op", "t", on); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error { p.MaxArguments = -1; return nil }); !errors.Is(err, gate.ErrPolicy) {
		t.Errorf("a policy that cannot hold: err = %v", err)
	}
	if _, err := d.SetPolicy(t.Context(), "op", "@host", on); !errors.Is(err, grant.ErrRef) {
		t.Errorf("a policy for no tenant: err = %v", err)
	}
	if _, err := d.SetHost(t.Context(), "op", func(h *gate.Host) error {
		h.Interpreters = map[string]gate.Interpreter{"py": {Path: "/usr/bin/python3"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.SetHost(t.Context(), "op", func(h *gate.Host) error {
		h.Interpreters[".py"] = gate.Interpreter{}
		return nil
	}); !errors.Is(err, gate.ErrPolicy) {
		t.Errorf("an extension with a dot: err = %v", err)
	}
	if h, _ := d.Host(t.Context()); len(h.Interpreters) != 1 {
		t.Errorf("a refused change left its trace in the host's settings: %v", h.Interpreters)
	}
	if _, err := d.Revoke(t.Context(), "op", "t", g.ID, "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Revoke(t.Context(), "op", "t", g.ID, "again"); !errors.Is(err, grant.ErrConflict) {
		t.Errorf("revoked twice: err = %v", err)
	}
	if _, err := d.Revoke(t.Context(), "op", "other", g.ID, ""); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("another tenant's grant: err = %v, want it not found", err)
	}
	if got, want := d.kinds(t), "grant policy host revoke"; got != want {
		t.Errorf("log has %q, want %q", got, want)
	}
	if _, err := d.log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// What a policy puts into a script's environment may be secret: the log has its
// name and not its value.
func TestEnvironmentStaysOutOfTheLog(t *testing.T) {
	d := newDesk(t)
	if _, err := d.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error {
		p.Environment = map[string]string{"API_TOKEN": "hunter2hunter2"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for leaf, err := range d.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if text := string(leaf.Bytes); strings.Contains(text, "hunter2") || !strings.Contains(text, "API_TOKEN") {
			t.Errorf("leaf holds the value, or not the name: %q", text)
		}
	}
}

// Changes made at once all stand, each with its entry.
func TestChangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for i := range 6 {
			wg.Go(func() {
				_, err := d.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error {
					p.Interpreters = append(p.Interpreters, fmt.Sprintf("x%d", i))
					return nil
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				} else if !errors.Is(err, grant.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		p, err := d.Policy(t.Context(), "t")
		if err != nil || len(p.Interpreters) != made || made == 0 {
			t.Errorf("%d changes were made, the policy has %v, %v", made, p.Interpreters, err)
		}
		if got := strings.Count(d.kinds(t), "policy"); got != made {
			t.Errorf("%d entries for %d changes", got, made)
		}
	})
}
