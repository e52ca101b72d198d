package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/internal/daemon"
	ic "github.com/tracon-go/tracon/internal/imagecase"
)

// imported is a house with the runtime "first", and the folder that it came from.
func imported(t *testing.T) (h *daemon.House, from string, out daemon.Imported) {
	t.Helper()
	h, _ = open(t, map[string]string{"s/SKILL.md": front})
	from = t.TempDir()
	write(t, filepath.Join(from, "usr", "bin", "run"), "#!run\n")
	out, err := h.ImportRuntime(t.Context(), admin.Naming{Actor: "o", Name: "first"}, from, nil, oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whose folders nobody may write to
		if err := h.Images.Remove(out.Digest); err != nil && !errors.Is(err, image.ErrNotFound) {
			t.Error(err)
		}
	})
	return h, from, out
}

// late are settings that change just behind the first who looks.
type late struct {
	gate.Hosts
	once func()
}

func (l *late) Host(ctx context.Context) (gate.Host, error) {
	host, err := l.Hosts.Host(ctx)
	if f := l.once; f != nil {
		l.once = nil
		f()
	}
	return host, err
}

// A runtime that gets a name while another removal looks for what nobody needs is
// still there.
func TestNamedWhilePruned(t *testing.T) {
	h, _, out := imported(t)
	named := false
	h.Hosts = &late{h.Hosts, func() {
		named = true
		if _, err := h.Admin.NameRuntime(t.Context(), admin.Naming{Actor: "o", Name: "second", Digest: out.Digest}); err != nil {
			t.Error(err)
		}
	}}
	_, kept, err := h.RemoveRuntime(t.Context(), "o", "first", "")
	if err != nil || !kept || !named {
		t.Errorf("kept %v, named %v, %v; want all of it", kept, named, err)
	}
	if err := h.Images.Verify(t.Context(), out.Digest); err != nil {
		t.Errorf("what was just named: %v", err)
	}
	if _, kept, err := h.RemoveRuntime(t.Context(), "o", "second", ""); err != nil || kept {
		t.Errorf("without a name: kept %v, %v; want it gone", kept, err)
	}
}

// A last reader calls over when there is no more to read.
type last struct {
	r    *bytes.Reader
	over func()
}

func (l last) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if err == io.EOF {
		l.over()
	}
	return n, err
}

// TM-23, case 40: who leaves when all is unpacked and nothing is named yet leaves nothing.
func TestLeftBeforeNamed(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("the operator left")
	packed := ic.Tar(ic.Entry{Name: "usr/bin/run", Content: strings.Repeat("x", 256<<10)}) // more than is looked at to see what it is
	_, err := h.ImportRuntime(ctx, admin.Naming{Actor: "o", Name: "first"}, "", last{bytes.NewReader(packed), func() { cancel(why) }}, oci.Options{})
	if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that somebody left", err)
	}
	list, err := h.Images.List()
	if err != nil || len(list) > 0 {
		t.Errorf("there is still %v, %v", list, err)
	}
	for _, d := range list {
		if err := h.Images.Remove(d); err != nil {
			t.Error(err)
		}
	}
}

// … and a removal that was begun is not left in the middle.
func TestLeftWhileRemoved(t *testing.T) {
	h, _, out := imported(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Hosts = &late{h.Hosts, cancel}
	if _, kept, err := h.RemoveRuntime(ctx, "o", "first", ""); err != nil || kept {
		t.Errorf("kept %v, %v; want it gone", kept, err)
	}
	if _, err := h.Images.Info(out.Digest); !errors.Is(err, image.ErrNotFound) {
		t.Errorf("its files: %v, want that there are none", err)
	}
}

// A runtime that was altered is found, and the remedy that is told heals it.
func TestFsckRuntimes(t *testing.T) {
	h, from, out := imported(t)
	var seen []string
	look := func() (invariants []string) {
		t.Helper()
		_, found := examined(t, h)
		for _, f := range found {
			invariants = append(invariants, f.Invariant)
			if f.Invariant == "runtime" && (!strings.Contains(f.What, out.Digest.String()) || !strings.Contains(f.What, "usr/bin/run") || !strings.Contains(f.Remedy, "import the same again")) {
				t.Errorf("finding %+v", f)
			}
		}
		return invariants
	}
	if got := look(); len(got) > 0 {
		t.Fatalf("before anything was altered there is %v", got)
	}
	file := filepath.Join(h.Config.Data, "images", out.Digest.Hex(), "root", "usr", "bin", "run")
	if err := errors.Join(os.Chmod(file, 0o644), os.WriteFile(file, []byte("#!bad\n"), 0o644), os.Chmod(file, 0o444)); err != nil {
		t.Fatal(err)
	}
	if got := look(); !slices.Equal(got, []string{"runtime"}) {
		t.Errorf("of what was altered fsck finds %v, want one runtime", got)
	}
	if _, err := h.Fsck(t.Context(), func(what string, _ uint64) { seen = append(seen, what) }, func(fsck.Finding) {}); err != nil {
		t.Error(err)
	}
	if !slices.Contains(seen, "entries of the runtime "+out.Digest.String()) {
		t.Errorf("it shows progress of %v, and of no runtime", seen)
	}
	if _, err := h.ImportRuntime(t.Context(), admin.Naming{Actor: "o", Name: "first"}, from, nil, oci.Options{}); err != nil {
		t.Error(err)
	}
	if got := look(); len(got) > 0 {
		t.Errorf("after the same was imported again there is %v", got)
	}
}

// What no box could ever show is refused when it is imported: nothing is left, and
// nothing has a name.
func TestNeverShown(t *testing.T) {
	for _, tc := range []struct {
		name, says string
		make       func(dir string) error
	}{
		{"a name with a blank", "cannot be shown", func(d string) error { return os.Mkdir(filepath.Join(d, "a b"), 0o755) }},
		{"long links", "texts of", func(d string) (err error) {
			for n := range 17 {
				err = errors.Join(err, os.Symlink(strings.Repeat("x", 1000), filepath.Join(d, fmt.Sprint("link", n))))
			}
			return err
		}},
		{"many links", "entries at its top", func(d string) (err error) {
			for n := range 401 {
				err = errors.Join(err, os.Symlink("usr", filepath.Join(d, fmt.Sprint("link", n))))
			}
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, _ := open(t, map[string]string{"s/SKILL.md": front})
			from := t.TempDir()
			write(t, filepath.Join(from, "usr", "bin", "run"), "#!run\n")
			if err := tc.make(from); err != nil {
				t.Fatal(err)
			}
			_, err := h.ImportRuntime(t.Context(), admin.Naming{Actor: "o", Name: "first"}, from, nil, oci.Options{})
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			if left, err := os.ReadDir(filepath.Join(h.Config.Data, "images")); err != nil || len(left) > 0 {
				t.Errorf("there is still %v, %v", left, err)
			}
			if list, err := h.Runtimes(t.Context()); err != nil || len(list) > 0 {
				t.Errorf("there are the runtimes %v, %v", list, err)
			}
		})
	}
}
