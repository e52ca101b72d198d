//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2: the posture is of the tier of sandboxes, every required wall stands with a
// proof, and what does not stand says what to do.
func TestPosture(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Executor != "sandbox" || p.Tier != grant.Sandbox || p.Claimed {
		t.Errorf("got %+v", p)
	}
	may := mayLack(t)
	for _, w := range p.Walls {
		if !w.Stands && !slices.Contains(may, w.Name) {
			t.Errorf("wall %+v does not stand", w)
		}
		if err := (gate.Policy{RequireWalls: []string{w.Name}}).Validate(); err != nil {
			t.Errorf("no policy can ask for the wall: %v", err)
		}
		if w.Proof == "" || w.Stands == (w.Remedy != "") {
			t.Errorf("wall %+v has no proof, a remedy that nobody needs, or none", w)
		}
		t.Logf("%-22s %v: %s %s", w.Name, w.Stands, w.Proof, w.Remedy)
	}
}

// mayLack returns the walls that need not stand here: those that a controller of
// cgroups holds that this user is not given. Other tests leave out what does not
// stand, so that here it must be noticed. The limit of processes is none of them:
// that of the identity holds it too.
func mayLack(t testing.TB) []string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, need := range []struct{ wall, controller string }{{"memory", "memory"}, {"processor time", "cpu"}} {
		given := false
		for line := range strings.Lines(string(own)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if !slices.Contains(strings.Split(f[1], ","), need.controller) {
				continue
			}
			dir, err := os.MkdirTemp(filepath.Join("/sys/fs/cgroup", need.controller, f[2]), "tracon-given-")
			if err != nil {
				continue
			}
			given = true
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
		if !given {
			list = append(list, need.wall)
		}
	}
	return list
}

// B2: the digest of what was seen of the walls is the same for the same run, and
// another for other walls.
func TestPostureDigest(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	run := func(o executortest.Order) string {
		t.Helper()
		res, err := e.Execute(t.Context(), admit(t, w, o))
		if err != nil || res.PostureDigest.IsZero() {
			t.Fatal(res, err)
		}
		return res.PostureDigest.String()
	}
	first, again := run(script("sh", "true\n")), run(script("sh", "exit 1\n"))
	o := script("sh", "true\n")
	o.Policy.Processes = 10
	if other := run(o); first != again || other == first {
		t.Errorf("got %s, %s and %s", first, again, other)
	}
}
