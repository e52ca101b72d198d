// Package pgserver starts a PostgreSQL of its own for the tests of a package: a
// new cluster in a temporary folder, reached through a unix socket there, with
// every write flushed as in production. It is ended with the tests, and nothing
// of it stays.
//
// A package's TestMain hands its tests to [Main]; a test takes a database with
// [New]. The server is started when the first test asks.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Password is that of the server's only user. It stands in every address that
// New returns, so that a test sees where it leaks.
const Password = "s3cret-of-the-tests"

const user = "tracon"

// patience is how long the server may take to start or to end. It keeps a test
// from hanging and is never waited for.
const patience = 3 * time.Minute

// A Server is a running PostgreSQL.
type Server struct {
	folder string // of the cluster, and of its socket
	bin    string // folder of its programs
	stderr bytes.Buffer

	mu    sync.Mutex
	run   *running
	count atomic.Int64
}

type running struct {
	process *os.Process
	ended   chan struct{}
	err     error
}

var errMissing = errors.New("it is not installed")

var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Main runs the tests of m and then ends the server, if one was started. It
// returns the exit code. More are checks to be made when the server is gone; one
// that fails is asked again for a while, since the driver allows a connection
// whose query was broken off 15 s to be cleaned up.
func Main(m *testing.M, more ...func() error) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	var err error
	if shared.server != nil {
		err = shared.server.remove()
	}
	for _, check := range more {
		err = errors.Join(err, eventually(check))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func eventually(check func() error) (err error) {
	for range 30 {
		if err = check(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// Shared returns the server of this package's tests. A machine without
// PostgreSQL skips the test, and fails it where everything is required.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	if errors.Is(shared.err, errMissing) {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(shared.err)
		}
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// New returns the address of a new, empty schema. It is a database of its own
// for whoever names no other.
func New(t testing.TB) string {
	t.Helper()
	address, err := Shared(t).Schema()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Schema makes a schema and returns its address.
func (s *Server) Schema() (string, error) {
	name := fmt.Sprint("s", s.count.Add(1))
	_, err := s.SQL("CREATE SCHEMA " + name)
	return s.Address("search_path", name), err
}

// Address returns the address of the server, with parameters in turn.
func (s *Server) Address(parameters ...string) string {
	q := url.Values{"host": {s.folder}}
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, Password), Path: "/postgres", RawQuery: q.Encode()}
	return u.String()
}

// SQL has the server's own client execute text, and returns what it prints.
func (s *Server) SQL(text string) (string, error) {
	c := exec.Command(filepath.Join(s.bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", s.Address(), "-c", text)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, stderr.Bytes())
	}
	return string(bytes.TrimSpace(out)), nil
}

// programs returns the folder of the newest server that is installed.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		version := func(path string) int {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
			return n
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := exec.LookPath("postgres")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("this test needs a PostgreSQL (Debian: apt-get install postgresql): %w", errMissing)
	}
	return filepath.Dir(path), nil
}

func start() (s *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	s = &Server{folder: folder, bin: bin}
	word := filepath.Join(folder, "word")
	if err := os.WriteFile(word, []byte(Password), 0o600); err != nil {
		return nil, err
	}
	if err := give(folder, word); err != nil {
		return nil, err
	}
	// The collation is another than that of bytes, as on most servers.
	if err := s.initialise(word, "--locale-provider=icu", "--icu-locale=en-US", "--locale=C"); err != nil {
		return nil, err
	}
	return s, s.Start()
}

func (s *Server) initialise(word string, more ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), append([]string{"-D", filepath.Join(s.folder, "data"), "-U", user,
		"--auth=scram-sha-256", "--pwfile=" + word, "--encoding=UTF8", "--no-sync", "--no-instructions"}, more...)...)
	c.Dir, c.Env, c.SysProcAttr = s.folder, s.environment(), asUser()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return os.Remove(word)
}

func (s *Server) environment() []string { return []string{"PATH=" + s.bin, "LC_ALL=C", "TZ=UTC"} }

// Start starts the server again, after Kill. It returns when it answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &running{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(r.ended)
		// The kernel ends the server when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c := exec.Command(filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.folder, "data"), "-k", s.folder,
			"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=32MB")
		c.Dir, c.Env, c.SysProcAttr = s.folder, s.environment(), asUser()
		s.stderr.Reset()
		c.Stderr = &s.stderr
		err := c.Start()
		r.process = c.Process
		started <- err
		if err == nil {
			r.err = c.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.run = r
	for began := time.Now(); ; {
		_, err := s.SQL("SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("postgres ended: %w: %s", r.err, s.stderr.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > patience {
			return errors.Join(fmt.Errorf("postgres does not answer: %w", err), s.end(syscall.SIGQUIT))
		}
	}
}

// Kill ends the server at once, as a crash does: what was not flushed is lost,
// and Start recovers the rest.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end(syscall.SIGQUIT)
}

func (s *Server) end(sig os.Signal) error {
	if s.run == nil {
		return nil
	}
	if err := s.run.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.run.ended:
	case <-time.After(patience):
		return errors.Join(errors.New("postgres does not end"), s.run.process.Kill())
	}
	s.run = nil
	return nil
}

func (s *Server) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.end(os.Interrupt), os.RemoveAll(s.folder))
}
