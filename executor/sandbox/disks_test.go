//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/image"
)

// B10: the rate of disks holds for the disk of the runtimes too, and before the
// first of them is imported.
func TestDisksOfPrograms(t *testing.T) {
	host := layout{binds: []bind{{"/usr", true, attrHost}}}
	data := t.TempDir()
	made := filepath.Join(data, "runtimes")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		dir  string
		want string
	}{
		{"a store that is there", made, made},
		{"one that is not", filepath.Join(data, "a", "b"), data},
		{"a relative one that is not", "no-such-folder", "."},
	} {
		if got, want := readFrom(host, image.New(tc.dir)), []string{"/usr", tc.want}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, want)
		}
	}
	if got := readFrom(host, nil); !slices.Equal(got, host.folders()) {
		t.Errorf("without a store: got %q", got)
	}
}
