//go:build microvm

package kit

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// The agent is its source, byte for byte, where this is the Go that it was made by: so
// nobody has to take the bytes within this program at their word.
func TestAgentIsItsSource(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("../agent/build.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	made, err := os.ReadFile(filepath.Join(dir, "agent.gz"))
	if err != nil {
		t.Fatal(err)
	}
	agent, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(agent))
	if err != nil {
		t.Fatal(err)
	}
	if info.GoVersion != runtime.Version() {
		t.Logf("it was made by %s and this is %s: it can be made, and has other bytes", info.GoVersion, runtime.Version())
		return
	}
	if !bytes.Equal(made, packedAgent) {
		t.Error("agent.gz is not what agent/build.sh makes of its source; run it")
	}
}
