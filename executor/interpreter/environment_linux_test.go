package interpreter_test

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/image"
)

// A runtime's PATH says where its programs are looked for, and is what its runs see in
// place of the fixed one; a policy's variables come to it.
func TestEnvironmentOfARuntime(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const program = "\x7fELF, for all that is looked at"
	if err := w.WriteHeader(&tar.Header{Name: "opt/venv/bin/python3", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, program)
	w.Close()
	s := image.New(filepath.Join(t.TempDir(), "images"))
	load := func(environment ...string) *image.Image {
		t.Helper()
		made, err := s.ImportLayers(t.Context(), []image.Layer{func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }}, environment, image.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			made.Image.Close()
			if err := s.Remove(made.Digest); err != nil {
				t.Error(err)
			}
		})
		return made.Image
	}
	set, usual := load("PATH=/opt/venv/bin:/usr/bin", "LC_ALL=C", "PYTHONPATH=/x"), load()
	if f, err := interpreter.Inside("py", "set", set, ""); err != nil || f.Path != "/opt/venv/bin/python3" {
		t.Errorf("with a PATH found %+v, %v", f, err)
	}
	if f, err := interpreter.Inside("py", "usual", usual, ""); err == nil {
		t.Errorf("without a PATH found %+v", f)
	}
	for _, tc := range []struct {
		name string
		in   *image.Image
		want []string
	}{
		{"the host's programs", nil, []string{"HOME=/h", "LANG=C.UTF-8", "PATH=" + interpreter.SearchPath, "TMPDIR=/t", "TZ=UTC", "A=1"}},
		{"a runtime that sets nothing", usual, []string{"HOME=/h", "LANG=C.UTF-8", "PATH=" + interpreter.SearchPath, "TMPDIR=/t", "TZ=UTC", "A=1"}},
		{"a runtime that sets some", set, []string{"HOME=/h", "LANG=C.UTF-8", "LC_ALL=C", "PATH=/opt/venv/bin:/usr/bin", "TMPDIR=/t", "TZ=UTC", "A=1"}},
	} {
		if got := interpreter.Environment(tc.in, "/h", "/t", map[string]string{"A": "1"}); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
