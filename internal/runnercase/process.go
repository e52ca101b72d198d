package runnercase

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// env tells a test binary what it is instead: a JSON list of a role and its words.
const env = "TRACON_TEST_ROLE"

// Main is the whole of a TestMain, and never returns. Where the process was started by
// [Start] it does what its role does; else it runs the tests by run, which is that of
// the [testing.M] or calls it.
func Main(run func() int, roles map[string]func(words []string) error) {
	text, started := os.LookupEnv(env)
	if !started {
		os.Exit(run())
	}
	_ = os.Unsetenv(env) // no script inherits it
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil || len(words) == 0 || roles[words[0]] == nil {
		fmt.Fprintf(os.Stderr, "%s=%s names no role\n", env, text)
		os.Exit(2)
	}
	if err := roles[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Process is this test binary in another role.
type Process struct {
	Line string // the first that it printed
	cmd  *exec.Cmd
}

// Start starts this test binary in the role, and waits for the line that it prints when
// it is ready. Its standard input ends with the test, and then it must end well.
func Start(t testing.TB, role string, words ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(append([]string{role}, words...))
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: exec.Command(self, "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), env+"="+string(text))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState.Exited() {
			t.Errorf("the %s: %v", role, err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the %s does not tell that it is ready: %v", role, err)
	}
	p.Line = strings.TrimSpace(line)
	return p
}

// Kill ends the process at once, as a crash does. It may have ended.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
