package remote_test

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/runnercase"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/wire"
)

func TestMain(m *testing.M) {
	runnercase.Main(m.Run, map[string]func([]string) error{"runner": serveRunner})
}

// bearer knows one peer by its key.
type bearer string

func (b bearer) Peer(r *http.Request) (gate.Peer, string, error) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+string(b))) != 1 {
		return gate.Peer{}, "", runnerapi.ErrStranger
	}
	return gate.Peer{Name: "host", AllTenants: true}, "key", nil
}

// serveRunner is a runner service, told its executor and folder, until its standard input
// ends. It prints its address.
func serveRunner(words []string) (err error) {
	s, err := runnercase.Open(words[0], words[1], bearer(testKey))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
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

// elsewhere is an executor that asks a runner service in another process.
func elsewhere(t testing.TB, local, folder string) *remote.Executor {
	t.Helper()
	return open(t, "http://"+runnercase.Start(t, "runner", local, folder).Line, nil)
}

func opening(t testing.TB, local, folder string) runnercase.Elsewhere {
	t.Helper()
	e := elsewhere(t, local, folder)
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runnercase.Elsewhere{Executor: e, Posture: posture, Busy: func() int {
		info, err := e.Info(t.Context())
		if err != nil {
			t.Error(err)
		}
		return info.Busy
	}}
}

// R2: a runner service in another process keeps the rules of every executor.
func TestConformance(t *testing.T) {
	t.Parallel()
	runnercase.Conformance(t, opening)
}

// B2, M09: no attack of the catalogue gets out of a box that another process makes.
func TestHostile(t *testing.T) {
	t.Parallel()
	runnercase.Hostile(t, opening)
}

// R30: what the runner tells of itself is what the wire says.
func TestInfo(t *testing.T) {
	e := elsewhere(t, process.Name, filepath.Join(t.TempDir(), "run"))
	info, err := e.Info(t.Context())
	if err != nil || !info.Knows() || info.Name != "runner-1" || info.MaxInline != wire.MaxInline || len(info.Runtimes) != 3 {
		t.Errorf("got %+v, %v", info, err)
	}
}
