package skill

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// unprivileged runs f as somebody whom modes hold back. For root, that is a
// thread that touches files as nobody; it ends with f.
func unprivileged(t *testing.T, folder string, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	for p := filepath.Dir(folder); strings.HasPrefix(p, os.TempDir()) && p != os.TempDir(); p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		f()
	}()
	<-done
}
