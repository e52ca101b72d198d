package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/runnercase"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/wire"
)

func TestMain(m *testing.M) {
	runnercase.Main(m.Run, map[string]func([]string) error{"runner": joinRunner})
}

// nobody has a key of the runner: it is reached through the fleet alone.
type nobody struct{}

func (nobody) Peer(*http.Request) (gate.Peer, string, error) {
	return gate.Peer{}, "", runnerapi.ErrStranger
}

// joinRunner is a runner that joins the server, told its executor, its folder, the
// server's address and its seed, until its standard input ends.
func joinRunner(words []string) (err error) {
	s, err := runnercase.Open(words[0], words[1], nobody{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.Info(context.Background())
	if err != nil {
		return err
	}
	j := fleet.Joining{
		Link: fleet.Link{URLs: []string{words[2]}, Seed: []byte(words[3])}, Pool: pool, Name: info.Name, Tier: grant.Tier(info.Tier),
		Logger: runnercase.Quiet(), Info: s.Info, Explain: s.Problem,
		Work: func(ctx context.Context, run wire.Run, closure bundle.Bundle, show func(wire.Output)) (wire.Answer, error) {
			return s.Run(ctx, gate.Peer{Name: "fleet", AllTenants: true}, run, closure, show)
		},
	}
	for _, r := range info.Runtimes {
		j.Runtimes = append(j.Runtimes, r.Name)
	}
	m, err := fleet.Join(j)
	if err != nil {
		return err
	}
	fmt.Println("joined")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return m.Close(context.Background())
}

// elsewhere is a fleet of one runner, in another process. Its walls are what it says.
func elsewhere(t testing.TB, local, folder string) runnercase.Elsewhere {
	t.Helper()
	g := newGround(t, "runner-1")
	e := g.executor(nil)
	runnercase.Start(t, "runner", local, folder, "nats://"+g.server.Address(), string(g.seeds["runner-1"]))
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := g.await(e, 1)[0].Info
	posture.Tier = grant.Tier(now.Tier)
	for _, w := range now.Walls {
		posture.Walls = append(posture.Walls, executor.Wall{Name: w.Name, Stands: w.Stands})
	}
	return runnercase.Elsewhere{Executor: e, Posture: posture, Busy: func() int { return g.await(e, 1)[0].Info.Busy }}
}

// R2: a runner of a fleet, in another process, keeps the rules of every executor.
func TestConformance(t *testing.T) {
	t.Parallel()
	runnercase.Conformance(t, elsewhere)
}

// B2: no attack of the catalogue gets out of a box that a runner of a fleet makes.
func TestHostile(t *testing.T) {
	t.Parallel()
	runnercase.Hostile(t, elsewhere)
}
