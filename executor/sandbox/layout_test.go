//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// Case 35: a box shows an interpreter when it shows its name and what that leads to.
func TestShows(t *testing.T) {
	further, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/env", filepath.Join(further, "inside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/exe", filepath.Join(further, "outside")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		folders    []string
		want       bool
	}{
		{"of the system", "/usr/bin/env", nil, true},
		{"by a link to its folder", "/bin/sh", nil, true},
		{"another way round", "/usr/../usr/bin/env", nil, true},
		{"a link elsewhere that leads to it", filepath.Join(further, "inside"), nil, false},
		{"in a folder that is shown", filepath.Join(further, "inside"), []string{further}, true},
		{"beside a folder that is shown", filepath.Join(further, "inside"), []string{further + "/in"}, false},
		{"what it leads to is not shown", filepath.Join(further, "outside"), []string{further}, false},
		{"missing", "/usr/bin/there-is-no-such-program", nil, false},
		{"a name that begins alike", "/usr-local/bin/env", nil, false},
	} {
		if got := Shows(tt.path, tt.folders); got != tt.want {
			t.Errorf("%s: %s is shown: %v", tt.name, tt.path, got)
		}
	}
}
