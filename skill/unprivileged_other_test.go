//go:build !linux

package skill

import (
	"os"
	"testing"
)

func unprivileged(t *testing.T, _ string, f func()) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Fatal("modes hold nothing back from root; run the tests as another user")
	}
	f()
}
