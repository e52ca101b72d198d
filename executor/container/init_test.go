//go:build linux && (amd64 || arm64)

package container

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The first process of a container is what its source says, byte for byte, on both
// architectures, and small enough to be read.
func TestInitIsItsSource(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			assembler := map[string]string{"amd64": "x86_64-linux-gnu-as", "arm64": "aarch64-linux-gnu-as"}[arch]
			if _, err := exec.LookPath(assembler); err != nil {
				if os.Getenv("TRACON_REQUIRE") == "all" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			made := filepath.Join(t.TempDir(), arch)
			if out, err := exec.Command("init/build.sh", arch, made).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(made)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("init", arch))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("init/%s is not what init/build.sh makes of its source; run it", arch)
			}
			if len(want) > 1024 {
				t.Errorf("it has %d bytes", len(want))
			}
		})
	}
}
