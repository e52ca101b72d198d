package kit

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source returns the sum of what the agent is made of, as agent/build.sh takes it.
func source(t *testing.T) string {
	t.Helper()
	h := sha256.New()
	for _, pattern := range []string{"../agent/*.go", "../agent/wait.[jp]*", "../internal/frame/*.go", "../../../bundle/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(files))
		}
		slices.Sort(files)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") || strings.HasSuffix(f, "_other.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			h.Write([]byte(filepath.Base(f) + "\n"))
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// B1, R29: the agent within this program is made of the source beside it, whole, static,
// and for the processor of the machines.
func TestAgent(t *testing.T) {
	sum, err := os.ReadFile("agent.sum")
	if err != nil {
		t.Fatal(err)
	}
	if got := source(t); strings.TrimSpace(string(sum)) != got {
		t.Errorf("agent.gz is not made of this source; run executor/microvm/agent/build.sh")
	}
	agent, err := agentProgram()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(agent))
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 || f.Machine != elf.EM_X86_64 {
		t.Errorf("it is for %s and needs %q, %v", f.Machine, libraries, err)
	}
	if len(agent) > 4<<20 {
		t.Errorf("it has %d bytes, which each machine has in its memory", len(agent))
	}
}
