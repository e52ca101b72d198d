package kit

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// sources makes a kernel and modules, and returns where they are.
func sources(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	s := Source{Kernel: filepath.Join(dir, "vmlinuz"), Modules: filepath.Join(dir, "modules")}
	if err := errors.Join(os.MkdirAll(s.Modules+"/kernel/fs", 0o755), os.WriteFile(s.Kernel, bootImage(packed(kernel(elf.EM_X86_64, noteOwner, noteEntry))), 0o644),
		os.WriteFile(s.Modules+"/modules.builtin", []byte("kernel/drivers/virtio/virtio.ko\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m == "virtio" { // is built in
			continue
		}
		if err := os.WriteFile(s.Modules+"/kernel/fs/"+m+".ko", []byte("module "+m), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What was prepared is opened; of the same parts it is the same; and what is not there,
// or is not what was prepared, is said with what to do.
func TestPrepare(t *testing.T) {
	s := sources(t)
	dir := filepath.Join(t.TempDir(), "kit")
	if _, err := Open(dir); !errors.Is(err, ErrNotPrepared) || !strings.Contains(err.Error(), "tracon microvm prepare") {
		t.Errorf("before: %v", err)
	}
	info, err := Prepare(t.Context(), dir, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Prepare(t.Context(), dir, s)
	if err != nil || again.Kernel != info.Kernel || again.Initrd != info.Initrd {
		t.Errorf("of the same parts: %v, %v, want %v", again, err, info)
	}
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Disk(bundle.Sum([]byte("x"))); !errors.Is(err, ErrNotPrepared) {
		t.Errorf("a disk that is not there: %v", err)
	}
	k.Close()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the folder holds %v, %v, want the list, its lock, and two files", entries, err)
	}
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"a file with other bytes", func() error {
			name := filepath.Join(dir, file(info.Initrd))
			return errors.Join(os.Chmod(name, 0o600), os.WriteFile(name, []byte("other"), 0o600))
		}},
		{"a file that is gone", func() error { return os.Remove(filepath.Join(dir, file(info.Kernel))) }},
		{"another agent", func() error {
			l, err := readList(dir)
			l.Agent = bundle.Sum([]byte("x"))
			text, merr := json.Marshal(l)
			return errors.Join(err, merr, os.WriteFile(filepath.Join(dir, listName), text, 0o600))
		}},
		{"no list", func() error { return os.WriteFile(filepath.Join(dir, listName), []byte("{}"), 0o600) }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "tracon microvm prepare") {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := Prepare(t.Context(), dir, s); err != nil {
			t.Errorf("%s, prepared again: %v", c.name, err)
		}
		k, err := Open(dir)
		if err != nil {
			t.Fatalf("%s, prepared again: %v", c.name, err)
		}
		k.Close()
	}
}

// A source that lacks something is told, and nothing is made.
func TestSourceLacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Source) error
		want   string
	}{
		{"nothing named", func(s *Source) error { *s = Source{}; return nil }, "name a package"},
		{"both named", func(s *Source) error { s.Package = "x.deb"; return nil }, "name a package"},
		{"no kernel", func(s *Source) error { return os.Remove(s.Kernel) }, "the kernel"},
		{"a module is missing", func(s *Source) error { return os.Remove(s.Modules + "/kernel/fs/overlay.ko") }, "overlay"},
		{"no modules", func(s *Source) error { return os.RemoveAll(s.Modules) }, "modules"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sources(t)
			if err := c.change(&s); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "kit")
			if _, err := Prepare(t.Context(), dir, s); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := Open(dir); !errors.Is(err, ErrNotPrepared) {
				t.Errorf("it was made nevertheless: %v", err)
			}
		})
	}
}

// The list is read strictly.
func FuzzList(f *testing.F) {
	d := bundle.Sum([]byte("x"))
	good, err := json.Marshal(list{version, d, d, d, map[string]bundle.Digest{d.String(): d}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"more":2}`))
	f.Add(append(good, "{}"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseList(b)
		if err != nil {
			if !errors.Is(err, ErrChanged) {
				t.Errorf("got %v, want ErrChanged", err)
			}
			return
		}
		if l.Version != version || l.Kernel.IsZero() || l.Initrd.IsZero() || l.Agent.IsZero() {
			t.Errorf("got %+v", l)
		}
	})
}
