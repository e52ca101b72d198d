//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernel is a kernel of that version of Landlock, which knows the first so many
// rights on files and on the network, and scopes. A file is none.
type kernel struct {
	abi               int
	files, net, scope int
	bytes             int // of the attributes
}

// kernels are all versions until today, and one that is to come.
var kernels = []kernel{
	{1, 13, 0, 0, 8}, {2, 14, 0, 0, 8}, {3, 15, 0, 0, 8}, {4, 15, 2, 0, 16}, {5, 16, 2, 0, 16}, {6, 16, 2, 2, 24},
	{7, 16, 2, 2, 24}, {8, 16, 2, 2, 24}, {9, 17, 2, 2, 24}, {10, 17, 4, 2, 24}, {11, 18, 5, 3, 32},
}

func (k kernel) create(attr *unix.LandlockRulesetAttr, bytes, flags int) (int, error) {
	switch {
	case k.abi == 0:
		return -1, unix.ENOSYS
	case flags == unix.LANDLOCK_CREATE_RULESET_VERSION && attr == nil && bytes == 0:
		return k.abi, nil
	case flags != 0 || attr == nil:
		return -1, unix.EINVAL
	case bytes > k.bytes:
		return -1, unix.E2BIG
	}
	unknown := attr.Handled_access_fs >> k.files
	if bytes >= 16 {
		unknown |= attr.Handled_access_net >> k.net
	}
	if bytes >= 24 {
		unknown |= attr.Scoped >> k.scope
	}
	if unknown != 0 {
		return -1, unix.EINVAL
	}
	return -1, nil
}

// K19: before version 3 no script runs; from there on everything is denied that
// the kernel knows, in the version of today too, and nothing is asked of it that it
// does not know.
func TestLandlockOfEachVersion(t *testing.T) {
	for _, k := range append([]kernel{{}}, kernels...) {
		t.Run(fmt.Sprint(k.abi), func(t *testing.T) {
			l, err := findLandlock(k.create)
			if k.abi < leastLandlock {
				if err == nil || !strings.Contains(err.Error(), "Landlock") {
					t.Errorf("got %+v, %v, want a refusal", l, err)
				}
				return
			}
			newest := kernels[len(kernels)-2]
			files, net, scope := min(k.files, newest.files), min(k.net, newest.net), min(k.scope, newest.scope)
			want := unix.LandlockRulesetAttr{Handled_access_fs: 1<<files - 1, Handled_access_net: 1<<net - 1, Scoped: 1<<scope - 1}
			if err != nil || l.abi != k.abi || l.attr != want || l.bytes != min(k.bytes, newest.bytes) {
				t.Errorf("got %+v, %v, want %+v", l, err, want)
			}
			if l.attr.Handled_access_fs&unix.LANDLOCK_ACCESS_FS_TRUNCATE == 0 {
				t.Error("files outside can be emptied")
			}
		})
	}
	// A kernel that says more than it accepts is refused.
	if l, err := findLandlock(kernel{abi: 3, files: 1, bytes: 8}.create); err == nil {
		t.Errorf("got %+v of a kernel that accepts nothing", l)
	}
}
