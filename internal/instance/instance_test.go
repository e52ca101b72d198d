package instance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/instance"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/store/memstore"
)

// start starts an instance and returns whom it was handed to bury.
func start(t *testing.T, dir string, size uint64) (*instance.Instance, []instance.Dead) {
	t.Helper()
	var dead []instance.Dead
	i, err := instance.Start(t.Context(), dir, id.New(), size, func(_ context.Context, d instance.Dead) error {
		dead = append(dead, d)
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return i, dead
}

func closed(t *testing.T, i *instance.Instance, left bool) {
	t.Helper()
	if err := i.Close(t.Context(), left); err != nil {
		t.Error(err)
	}
}

// Only the dead are buried, once; those that live, and those that closed, are
// left alone.
func TestStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "instances")
	living, dead := start(t, dir, 7)
	if len(dead) != 0 {
		t.Errorf("in a new folder are dead: %v", dead)
	}
	second, dead := start(t, dir, 8)
	if len(dead) != 0 {
		t.Errorf("the living are buried: %v", dead)
	}
	closed(t, second, true) // as if it had died
	third, dead := start(t, dir, 9)
	if len(dead) != 1 || dead[0].About.Size != 8 || dead[0].About.PID != os.Getpid() {
		t.Fatalf("got %+v, want the one that began at 8", dead)
	}
	closed(t, third, false)
	closed(t, living, false)
	fourth, dead := start(t, dir, 10)
	if len(dead) != 0 {
		t.Errorf("buried twice, or a closed one: %v", dead)
	}
	closed(t, fourth, false)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "lock" {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// Who settles what nobody is known of does so when the dead are buried and nobody else
// starts; where that fails, nobody starts.
func TestStartSettles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "instances")
	dead, _ := start(t, dir, 7)
	closed(t, dead, true)
	buried := false
	bury := func(context.Context, instance.Dead) error { buried = true; return nil }
	failed := errors.New("failed")
	for _, want := range []error{failed, nil} {
		settled := false
		i, err := instance.Start(t.Context(), dir, id.New(), 8, bury, func(context.Context) error {
			settled = true
			if l, err := ownfile.TryLock(filepath.Join(dir, "lock")); l != nil || err != nil {
				t.Errorf("another one could start: %v, %v", l, err)
			}
			return want
		})
		if !buried || !settled || !errors.Is(err, want) || (i == nil) != (want != nil) {
			t.Errorf("buried %v, settled %v, got %v, %v", buried, settled, i, err)
		}
		if i != nil {
			closed(t, i, false)
		}
	}
}

// Who asks which processes have died makes nothing: a copy may be without the
// folder's lock, and may be read alone.
func TestLeftMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "instances")
	dead, _ := start(t, dir, 7)
	closed(t, dead, true)
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := instance.Left(t.Context(), dir)
	if err != nil || len(left) != 1 {
		t.Errorf("Left: %q, error %v; want the one that died", left, err)
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("in the folder are %v, error %v; before there were %v", after, err, before)
	}
}

// Fail closed: where what a dead process left cannot be closed, nobody starts,
// and the next one finds it again.
func TestBuryFails(t *testing.T) {
	dir := t.TempDir()
	i, _ := start(t, dir, 1)
	closed(t, i, true)
	full := errors.New("disk full")
	for range 2 {
		_, err := instance.Start(t.Context(), dir, id.New(), 1, func(context.Context, instance.Dead) error { return full }, nil)
		if !errors.Is(err, full) {
			t.Errorf("got %v, want the error of burying", err)
		}
	}
	next, dead := start(t, dir, 2)
	if len(dead) != 1 {
		t.Errorf("got %v, want the one that was not buried", dead)
	}
	closed(t, next, false)
	if _, err := instance.Start(t.Context(), dir, "../x", 0, nil, nil); err == nil {
		t.Error("an instance has a name that is no id")
	}
}

// "Never dropped": what a process had counted is found after its death, and
// what cannot be read of it is counted too.
func TestCounts(t *testing.T) {
	dir := t.TempDir()
	i, _ := start(t, dir, 1)
	log := audit.NewLog(memstore.New())
	log.KeepCounts(i)
	refuse := func(subject string, n int) {
		for range n {
			e := audit.Entry{Tenant: "t", Kind: audit.Refusal, Subject: subject}
			if err := log.Count(t.Context(), e, subject); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuse("a", 5)
	refuse("b", 3)
	refuse("c", 1)
	refuse("d", 2)
	closed(t, i, true)
	names, err := filepath.Glob(filepath.Join(dir, "*.counts"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	f, err := os.OpenFile(names[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 32<<10+40); err != nil { // in that of b
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next, dead := start(t, dir, 1)
	defer closed(t, next, false)
	var got []string
	for _, e := range dead[0].Counted {
		got = append(got, fmt.Sprintf("%s×%d", e.Subject, e.Count))
	}
	if diff := cmp.Diff([]string{"a×4", "d×1"}, got); diff != "" || dead[0].Damaged != 1 {
		t.Errorf("%d damaged, and (-want +got):\n%s", dead[0].Damaged, diff)
	}
	if err := next.Keep(0, make([]byte, 40_000), 1); err == nil {
		t.Error("an entry that has no place is kept")
	}
}

// A file that was cut while it was made tells of its instance even so.
func TestCutFile(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "half": `{"size":`, "garbage": "\xff", "long": string(make([]byte, 9000))} {
		dir := t.TempDir()
		dying := id.New()
		if err := os.WriteFile(filepath.Join(dir, dying+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"other.json", "other.counts", id.New() + ".counts"} { // the last is of one that has no file
			if err := os.WriteFile(filepath.Join(dir, other), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		i, dead := start(t, dir, 3)
		if len(dead) != 1 || dead[0].ID != dying || dead[0].About.Size != 0 || len(dead[0].Counted) != 0 {
			t.Errorf("%s: got %+v", name, dead)
		}
		closed(t, i, false)
		if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
			t.Errorf("%s: left in the folder: %v, %v; want the lock and two that are not ours", name, left, err)
		}
	}
}
