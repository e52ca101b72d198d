//go:build microvm && linux && amd64

package microvm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2, B3: an ordinary user's host that is root of a user namespace, with identities to
// give away and cgroups that were delegated to it, runs scripts in machines as root does:
// with every wall, and nothing left. What differs is who may stop a monitor; all else in
// ./check long.
func TestRunsWithoutRoot(t *testing.T) {
	cgroups := hostcase.NeedDelegate(t, hostcase.Ordinary)
	tests := "TestStopped"
	if full {
		tests += "|TestRuns|TestHostile|TestRestored|TestHangsAtBoot|TestWaiting|TestConformance"
	}
	hostcase.TestsRootless(t, cgroups, "^("+tests+")$", kernelForEverybody(t))
}

// kernelForEverybody copies the package of the kernel, which may lie where only root may
// go, and returns the variable that says where.
func kernelForEverybody(t *testing.T) string {
	t.Helper()
	made := filepath.Join(filepath.Dir(hostcase.OwnDir(t)), "kernel.deb")
	data, err := os.ReadFile(os.Getenv(kernelVariable))
	if err == nil {
		err = os.WriteFile(made, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kernelVariable + "=" + made
}
