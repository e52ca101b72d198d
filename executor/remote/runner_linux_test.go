package remote_test

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/store/memstore"
)

// runnerEnv makes this program a runner service: "EXECUTOR FOLDER KEY".
const runnerEnv = "TRACON_TEST_REMOTE_RUNNER"

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(runnerEnv)); len(words) == 3 {
		_ = os.Unsetenv(runnerEnv) // no script inherits it
		if err := serveRunner(words[0], words[1], words[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bearer knows one peer by its key.
type bearer string

func (b bearer) Peer(r *http.Request) (gate.Peer, string, error) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+string(b))) != 1 {
		return gate.Peer{}, "", runnerapi.ErrStranger
	}
	return gate.Peer{Name: "host", AllTenants: true}, "key", nil
}

// serveRunner is a runner service until its standard input ends. It prints its address.
func serveRunner(name, folder, key string) (err error) {
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var e interface {
		executor.Executor
		io.Closer
	}
	if name == sandbox.Name {
		e, err = sandbox.New(sandbox.Config{Runtime: folder, Logger: quiet})
	} else {
		e, err = process.New(process.Config{Runtime: folder, Logger: quiet})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	reception := gate.Reception{Enabled: true, Runtimes: map[string]gate.Runtime{}, Network: gate.Loopback}
	for _, ext := range []string{"sh", "py", "js"} {
		f, err := interpreter.Find(context.Background(), ext)
		if err != nil {
			return err
		}
		reception.Runtimes["host-"+ext] = gate.Runtime{Interpreter: f.Interpreter(), Extension: ext}
	}
	st := memstore.New()
	defer func() { err = errors.Join(err, st.Close()) }()
	runner, err := tracon.New(tracon.Config{Gate: gate.NewReceiver(gate.Receiving(reception), nil, audit.NewLog(st), ""), Executor: e, Calls: st, Logger: quiet,
		Slots: 64, SlotsPerTenant: 64})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close(context.Background())) }()
	many := limit.Config{KeyRate: 1 << 20, TenantRate: 1 << 20, RunRate: 1 << 20}
	s, err := runnerapi.New(runnerapi.Config{Name: "runner-1", Runner: runner, Receptions: gate.Receiving(reception), Peers: bearer(key), Limiter: limit.New(many), Logger: quiet})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Shutdown(context.Background())
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A runnerProcess is a runner service in another process.
type runnerProcess struct {
	address, folder string
	cmd             *exec.Cmd
}

func startRunner(t testing.TB, name string) *runnerProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &runnerProcess{folder: filepath.Join(t.TempDir(), "run")}
	p.cmd = exec.Command(self, "-test.run=^$")
	p.cmd.Env = append(os.Environ(), runnerEnv+"="+name+" "+p.folder+" "+testKey)
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
			t.Errorf("the runner: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the runner does not tell its address: %v", err)
	}
	p.address = "http://" + strings.TrimSpace(line)
	return p
}

// leftovers waits until the runs below the folder are gone: an executor elsewhere is
// told that a run is not wanted, and its end is not waited for.
func leftovers(folder string) []string {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		runs, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
		if len(runs) == 0 || time.Now().After(deadline) {
			return runs
		}
	}
}
