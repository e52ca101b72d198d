//go:build unix

package box

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Who says where, is heard; in a folder for everybody nothing but a private
// folder of ours is taken.
func TestDefaultRuntime(t *testing.T) {
	own := fmt.Sprintf("tracon-%d", os.Geteuid())
	disk := filepath.Join(os.TempDir(), own)
	for _, tc := range []struct {
		name   string
		env    map[string]string
		squat  func(t *testing.T, path string)
		shared bool // the folder in memory is taken, where there is a fit one
		want   string
	}{
		{"the user's runtime folder", map[string]string{"XDG_RUNTIME_DIR": "/run/user/1", "TMPDIR": "/x"}, nil, false, "/run/user/1/tracon"},
		{"a relative runtime folder", map[string]string{"XDG_RUNTIME_DIR": "run"}, nil, true, ""},
		{"TMPDIR", map[string]string{"TMPDIR": os.TempDir()}, nil, false, disk},
		{"nothing is said", nil, nil, true, ""},
		{"ours from before", nil, func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, true, ""},
		{"open to others", nil, func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) }, false, disk},
		{"a link", nil, func(t *testing.T, path string) { must(t, os.Symlink(t.TempDir(), path)) }, false, disk},
		{"a file", nil, func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o700)) }, false, disk},
		{"somebody else's", nil, func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
			if os.Geteuid() == 0 {
				must(t, os.Chown(path, 65534, 65534))
			} else {
				must(t, os.Chmod(path, 0o770)) // nobody else's can be made
			}
		}, false, disk},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, fit := inMemory(t)
			if tc.squat != nil {
				tc.squat(t, filepath.Join(dir, own))
			}
			want := tc.want
			if tc.shared {
				if want = disk; fit {
					want = filepath.Join(dir, own)
				}
			}
			if got := defaultRuntime(func(name string) string { return tc.env[name] }, dir); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if got := defaultRuntime(func(string) string { return "" }, t.TempDir()+"/none"); got != disk {
		t.Errorf("without a folder for everybody: got %s", got)
	}
}

// inMemory returns a folder below the one for everybody, where that is fit, and
// else any folder.
func inMemory(t *testing.T) (dir string, fit bool) {
	t.Helper()
	if !roomy(shared) {
		return t.TempDir(), false
	}
	dir, err := os.MkdirTemp(shared, "tracon-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir, true
}
