package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// patience keeps a test from hanging, and is never waited for.
const patience = 3 * time.Minute

// served is a `tracon serve` that runs.
type served struct {
	t       *testing.T
	folder  string
	env     map[string]string
	process *os.Process
	ended   chan struct{}
	code    int

	Address, Socket, Metrics string

	mu   sync.Mutex
	log  []string
	news chan struct{} // closed with the next line of the log
}

// newServed prepares a server with a data folder of its own, whose path is short
// enough for a socket. Its scripts run as plain processes, so that a test can hold
// them up with a pipe.
func newServed(t *testing.T, env map[string]string) *served {
	t.Helper()
	folder, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, folder: folder, env: map[string]string{
		asMain: "1", "HOME": folder, "PATH": os.Getenv("PATH"), "XDG_RUNTIME_DIR": filepath.Join(folder, "run"), "TMPDIR": folder,
		"TRACON_DATA": filepath.Join(folder, "data"), "TRACON_LISTEN": "127.0.0.1:0", "TRACON_EXECUTOR": "process", "GORACE": "halt_on_error=1",
	}}
	maps.Copy(s.env, env)
	if err := os.Mkdir(s.env["XDG_RUNTIME_DIR"], 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if err := gone(folder); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", strings.Join(s.lines(), "\n"))
		}
	})
	return s
}

func (s *served) command(words ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], words...)
	for k, v := range s.env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Dir = s.folder
	return c
}

// start starts it and returns when it serves.
func (s *served) start() *served {
	s.t.Helper()
	return s.startAs("serve", "--json")
}

func (s *served) startAs(words ...string) *served {
	s.t.Helper()
	c := s.command(words...)
	out, err := c.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.news, s.ended = make(chan struct{}), make(chan struct{})
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process = c.Process
	told := make(chan error, 1)
	go func() {
		var read sync.WaitGroup
		read.Go(func() { s.read(stderr) })
		told <- json.NewDecoder(out).Decode(s)
		_, _ = io.Copy(io.Discard, out)
		read.Wait()
		_ = c.Wait()
		s.code = c.ProcessState.ExitCode()
		close(s.ended)
	}()
	select {
	case err := <-told:
		if err != nil {
			<-s.ended
			s.t.Fatalf("it did not start: %v", err)
		}
	case <-time.After(patience):
		s.t.Fatal("it does not start")
	}
	return s
}

func (s *served) read(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		s.mu.Lock()
		s.log = append(s.log, in.Text())
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *served) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// said waits until the log has a line with that text, and returns it.
func (s *served) said(text string) string {
	s.t.Helper()
	for end := time.After(patience); ; {
		s.mu.Lock()
		i, news := slices.IndexFunc(s.log, func(line string) bool { return strings.Contains(line, text) }), s.news
		line := ""
		if i >= 0 {
			line = s.log[i]
		}
		s.mu.Unlock()
		if i >= 0 {
			return line
		}
		select {
		case <-news:
		case <-end:
			s.t.Fatalf("the log never said %q", text)
		}
	}
}

// forget empties the log that was kept, so that the same can be waited for again.
func (s *served) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

func (s *served) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// wait returns the exit code.
func (s *served) wait() int {
	s.t.Helper()
	select {
	case <-s.ended:
		return s.code
	case <-time.After(patience):
		s.t.Fatal("it does not end")
		return -1
	}
}

func (s *served) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill() // it may have ended
	<-s.ended
}

// as returns a client of the local operator: of a tenant, or of the platform.
func (s *served) as(tenant string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: "unix://" + s.Socket, Tenant: tenant})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// with returns a client with a key.
func (s *served) with(key string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: s.Address, Key: key})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// holding is a script that says that it runs, and goes on when the pipe that its
// argument names is opened for writing.
const holding = "echo begun; cat \"$1\" >/dev/null; echo went-on\n"

// setUp has the tenant run the script, and returns the client to run it with.
func (s *served) setUp(tenant, script string) *client.Client {
	s.t.Helper()
	return s.setUpBy("/bin/sh", tenant, script)
}

// setUpBy is setUp with the interpreter of the allow-list.
func (s *served) setUpBy(shell, tenant, script string) *client.Client {
	t := s.t
	t.Helper()
	ctx := t.Context()
	yes, long := true, float64(600)
	if _, err := s.as("").ChangeHost(ctx, "*", client.HostChange{Enabled: &yes, Interpreters: map[string]string{"sh": shell}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.as("").CreateTenant(ctx, client.NewTenant{Name: tenant}); err != nil {
		t.Fatal(err)
	}
	c := s.as(tenant)
	if _, err := c.ChangePolicy(ctx, "*", client.PolicyChange{Enabled: &yes, Interpreters: &[]string{"sh"}, TimeoutSeconds: &long}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ImportScript(ctx, client.ScriptImport{Skill: "s", Script: "s.sh", Data: []byte(script), Mode: "argv"}); err != nil {
		t.Fatal(err)
	}
	review, err := c.Review(ctx, "s", "s.sh", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateGrant(ctx, client.NewGrant{Skill: "s", Script: "s.sh", Digest: review.Digest, MinTier: "process"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// hold starts a run that goes on when the pipe is let go, and returns when its script
// runs.
func (s *served) hold(c *client.Client) (id string, letGo func()) {
	t := s.t
	t.Helper()
	pipe := filepath.Join(s.folder, fmt.Sprint("pipe", time.Now().UnixNano()))
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal([]string{pipe})
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: arguments}, client.RunOptions{Detach: true})
	if err != nil {
		t.Fatal(err)
	}
	try := func() bool { // it fails while there is no reader
		fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err == nil
	}
	t.Cleanup(func() { try() }) // a script whose server was killed
	letGo = func() {
		t.Helper()
		eventually(t, "the script waits, or was stopped", func() bool {
			r, err := c.Run(t.Context(), run.ID)
			return try() || err == nil && r.State == client.RunEnded
		})
	}
	for e, err := range c.FollowRun(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Output.Text, "begun") {
			return run.ID, letGo
		}
	}
	t.Fatal("the script never began")
	return "", nil
}

// ending returns what the call's record says, in a house that somebody may serve.
func ending(t *testing.T, c *client.Client, id string) string {
	t.Helper()
	call, err := c.Call(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return call.Ending
}

// eventually asks until it is so. It is a wait for another process, bounded by
// patience.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("it never came to pass that %s", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *served) ready() bool {
	r, err := s.as("").Ready(s.t.Context())
	return err == nil && r.Status == "ready"
}
