//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/bare"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2, B3: no attack of the catalogue gets out of a box, and each one gets
// through where the wall is missing.
func TestHostile(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	sandbox.Settle(e) // a box that was made ahead has the walls of one that was not
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.New(process.Config{Runtime: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	// A wall that is not promised is left out, and none may be that must stand here.
	lacks := hostile.Lacking(posture)
	may := append(mayLack(t), string(hostile.SharedFiles)) // which no sandbox has
	for _, w := range lacks {
		if !slices.Contains(may, string(w)) {
			t.Errorf("the wall %q is not promised", w)
		}
	}
	b := bare.Executor{Dir: t.TempDir()}
	races := hostile.DefaultRaces
	if os.Getenv(asNobodyEnv) != "" {
		races /= 5 // the race is the same for every user
	}
	hostile.Run(t, hostile.Setup{
		New: func(executortest.T) executor.Executor { return e }, Interpreters: hostcase.Interpreters(t), Lacks: lacks, Races: races,
		Control: func(_ executortest.T, w hostile.Wall) executor.Executor {
			if w == hostile.Cleanup && os.Getenv(asNobodyEnv) != "" {
				return nil // these wait for seconds, and are the same for every user
			}
			switch w {
			case hostile.Environment, hostile.Descriptors, hostile.Cleanup, hostile.Collection, hostile.Tasks, hostile.Memory:
				return b // a process has these walls, or has them where the host's cgroups allow it
			}
			return p
		},
		Leftovers: func() []string {
			return slices.DeleteFunc(left(e, runtime), func(s string) bool { return strings.Contains(s, "canary-") }) // the host's own
		},
	})
}

// The same holds for a host that is an ordinary user. Without a cgroup of its own
// the limits of memory and processor time are not promised.
func TestHostileAsAnotherUser(t *testing.T) {
	t.Parallel()
	t.Run("without a cgroup", func(t *testing.T) { asNobody(t, false, "^TestHostile$") })
	t.Run("with a delegated cgroup", func(t *testing.T) { asNobody(t, true, "^TestHostile$") })
}
