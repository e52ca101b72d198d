//go:build linux

package process_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// hostEnv makes the test binary a host that runs scripts in the folder that it
// names until it is killed.
const hostEnv = "TRACON_TEST_HOST"

// mess leaves all that a script can leave: a child, a process in a session of its
// own, and locked folders.
const mess = `sleep 300 &
(setsid sh -c 'echo >"$TMPDIR/ready"; exec sleep 300' &)
until [ -s "$TMPDIR/ready" ]; do sleep 0.01; done
mkdir -p "$HOME/a/b" && touch "$HOME/a/b/c" && chmod 000 "$HOME/a/b" "$HOME/a"
ln -s / "$HOME/root"
echo ready
sleep 300
`

func host(dir string) {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	e, err := process.New(process.Config{Runtime: dir})
	if err != nil {
		fail(err)
	}
	sh, err := interpreter.Find(context.Background(), "sh")
	if err != nil {
		fail(err)
	}
	o := script("sh", mess)
	o.Live = gate.NewLive(0)
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": sh.Interpreter()}).Admit(context.Background(), o)
	if err != nil {
		fail(err)
	}
	go func() {
		for c := range o.Live.Chunks() {
			os.Stdout.Write(c.Data)
		}
	}()
	_, err = e.Execute(context.Background(), req)
	fail(err)
}

// nobody is another user, who may do nothing in particular.
const nobody = 65534

// asNobody prepares cmd to run as another user, in a folder of that user. It
// does nothing where the tests themselves run as somebody without rights.
func asNobody(t *testing.T, cmd *exec.Cmd) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tracon-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// The binary lies where only the user of the tests may go.
	exe := filepath.Join(dir, "process.test")
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := execfile.Write(exe, in); err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Dir = exe, dir
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: false}}
	}
	return dir
}

// Case 40: after kill -9 of the host, the next start leaves no folder, no
// process and no cgroup of it; a host that lives is left alone.
func TestCase40KilledHost(t *testing.T) {
	for _, tc := range []struct {
		name   string
		nobody bool
	}{{"as this user", false}, {"as another user", true}} {
		t.Run(tc.name, func(t *testing.T) {
			start := func(runtime string) *exec.Cmd {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				if tc.nobody {
					runtime = filepath.Join(asNobody(t, cmd), "run")
				}
				cmd.Env = append(os.Environ(), hostEnv+"="+runtime)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
					t.Fatalf("the host said %q, %v", line, err)
				}
				return cmd
			}
			runtime := filepath.Join(t.TempDir(), "run")
			dead := start(runtime)
			if tc.nobody {
				_, runtime, _ = strings.Cut(dead.Env[len(dead.Env)-1], "=")
			}
			if len(processes(runtime)) < 3 {
				t.Fatalf("the script did not start what it should: %q", processes(runtime))
			}
			was := hostcase.Instances(runtime)
			_ = dead.Process.Kill()
			_ = dead.Wait()
			waitFor(t, "the script's first process dies with its host", func() bool {
				return !slices.ContainsFunc(processes(runtime), func(p string) bool { return strings.Contains(p, "main.sh") })
			})
			if len(hostcase.List(runtime)) == 0 {
				t.Fatal("nothing is left by the dead host, so this test shows nothing")
			}

			// A host of the same user starts. Another one lives beside it.
			if !tc.nobody {
				alive := start(runtime)
				defer func() { _ = alive.Wait() }()
				defer func() { _ = alive.Process.Kill() }()
				was = append(was, hostcase.Instances(runtime)...)
				if len(hostcase.List(runtime)) != 2 {
					t.Errorf("want the folder and the lock of the host that lives, got %q", hostcase.List(runtime))
				}
				e, _ := open2(t, runtime)
				if got := len(processes(runtime)); got < 3 {
					t.Errorf("processes of a host that lives were stopped: %q", processes(runtime))
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if got := hostcase.List(runtime); len(got) != 2 {
					t.Errorf("got %q, want what the living host has", got)
				}
				_ = alive.Process.Kill()
				_ = alive.Wait()
				e, _ = open2(t, runtime)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			} else {
				cmd := exec.CommandContext(t.Context(), "")
				asNobody(t, cmd)
				cmd.Args = []string{cmd.Path, "-test.run=^TestSweep$", "-test.v"}
				cmd.Env = append(os.Environ(), sweepEnv+"="+runtime, "TMPDIR=/tmp", "HOME=/")
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSweep") {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if left := append(hostcase.List(runtime), processes(runtime)...); len(left) > 0 {
				t.Errorf("left %q", left)
			}
			if left := hostcase.Cgroups(was...); len(left) > 0 {
				t.Errorf("left cgroups %q", left)
			}
		})
	}
}

func open2(t *testing.T, runtime string) (*process.Executor, string) {
	t.Helper()
	e, err := process.New(process.Config{Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	return e, runtime
}

const sweepEnv = "TRACON_TEST_SWEEP"

// TestSweep opens and closes an executor in a folder that a dead host left: what
// TestCase40KilledHost runs as another user. By itself it does so in an empty one.
func TestSweep(t *testing.T) {
	runtime := os.Getenv(sweepEnv)
	if runtime == "" {
		runtime = filepath.Join(t.TempDir(), "run")
	}
	e, _ := open2(t, runtime)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left := append(hostcase.List(runtime), processes(runtime)...); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 6000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("in a minute it did not come: %s", what)
}

// Everything works for a user without rights, to whom version managers' folders
// below /root are closed.
func TestAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("the tests themselves run as a user without rights")
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "")
	dir := asNobody(t, cmd)
	// Another user has no cgroup here, whatever is asked for. What else is left out: the thousand
	// runs, for their time; the host that is killed, which is another user's already.
	cmd.Args = []string{cmd.Path, "-test.v", "-test.skip=^TestCase34ThousandRuns$|^TestCase40KilledHost$|^Test/^without_a_cgroup$|^TestConformance/^on_disk"}
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "XDG_RUNTIME_DIR=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tests := regexp.MustCompile(`(?m)^=== RUN +(Test\w+)$`).FindAllStringSubmatch(string(out), -1)
	var ran []string
	for _, m := range tests {
		ran = append(ran, m[1])
	}
	for _, name := range []string{"TestConformance", "TestPosture", "TestWhatAScriptSees", "TestNothingLeaks", "TestClose", "TestNoteOfStoppedProcesses", "TestInterpreterThatCannotBeStarted", "TestRuntimeFolderMustBePrivate"} {
		if !slices.Contains(ran, name) || !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s did not run", name)
		}
	}
	for _, d := range executortest.Dialects() {
		if n := strings.Count(string(out), "--- PASS: TestConformance/in_memory,_without_a_cgroup/"+d.Name+"/"); n < 40 {
			t.Errorf("only %d cases of %s ran:\n%s", n, d.Name, out)
		}
	}
}
