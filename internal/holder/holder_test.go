//go:build unix

package holder

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const selfEnv = "TRACON_TEST_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		os.Stdout.WriteString(Self())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Nobody is dead of whom that is not certain: a lock that is waited for in vain only
// costs time, and one of the living is never taken.
func TestDead(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	if exe, err := os.Executable(); err == nil {
		cmd.Path = exe
	}
	cmd.Env = append(os.Environ(), selfEnv+"=1")
	out, err := cmd.Output() // it is dead, and was waited for
	if err != nil || len(out) == 0 {
		t.Fatalf("%q, %v", out, err)
	}
	parent := Self()
	words := strings.Fields(parent)
	cases := map[string]struct {
		text string
		want bool
	}{
		"nothing": {"", false}, "itself": {parent, false}, "garbage": {"x y z", false}, "a process that ended": {string(out), true},
		"no number": {strings.Replace(parent, words[0], "-1", 1), false},
	}
	if len(words) == 3 {
		cases["another that has the number now"] = struct {
			text string
			want bool
		}{words[0] + " " + words[1] + " 1", true}
		cases["where numbers are others'"] = struct {
			text string
			want bool
		}{strings.Replace(string(out), words[1], "pid:[1]", 1), false}
	}
	for name, c := range cases {
		if got := Dead(c.text); got != c.want {
			t.Errorf("%s: dead %t, want %t (%q)", name, got, c.want, c.text)
		}
	}
}

// A process that ended and that nobody has waited for holds nothing.
func TestZombieIsDead(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	if exe, err := os.Executable(); err == nil {
		cmd.Path = exe
	}
	cmd.Env = append(os.Environ(), selfEnv+"=1")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for b := make([]byte, 64); ; {
		n, err := pipe.Read(b)
		text.Write(b[:n])
		if err != nil {
			break
		}
	}
	for len(strings.Fields(text.String())) == 3 && !Dead(text.String()) {
		if t.Context().Err() != nil {
			t.Fatal("it ends no more")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
