package runnercase

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

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

// Quiet is the log of a process that is no test: its errors, on standard error.
func Quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// A Runner is a runner service with its executor, its door and its log in memory.
type Runner struct {
	*runnerapi.Service
	closers []func() error
}

// Names is the allow-list of a host whose scripts the runner of [Open] runs.
func Names(extensions ...string) map[string]gate.Interpreter {
	list := map[string]gate.Interpreter{}
	for _, ext := range extensions {
		list[ext] = gate.Interpreter{Name: "host-" + ext}
	}
	return list
}

// Open opens a runner with the local executor of that name, whose scripts run below the
// folder. Close it.
func Open(local, folder string, peers runnerapi.Peers) (_ *Runner, err error) {
	r := &Runner{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	var e interface {
		executor.Executor
		io.Closer
	}
	if local == sandbox.Name {
		e, err = sandbox.New(sandbox.Config{Runtime: folder, Logger: Quiet()})
	} else {
		e, err = process.New(process.Config{Runtime: folder, Logger: Quiet()})
	}
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, e.Close)
	reception := gate.Reception{Enabled: true, Runtimes: map[string]gate.Runtime{}, Network: gate.Loopback}
	for _, ext := range []string{"sh", "py", "js"} {
		f, err := interpreter.Find(context.Background(), ext)
		if err != nil {
			return nil, err
		}
		reception.Runtimes["host-"+ext] = gate.Runtime{Interpreter: f.Interpreter(), Extension: ext}
	}
	st := memstore.New()
	r.closers = append(r.closers, st.Close)
	runner, err := tracon.New(tracon.Config{Gate: gate.NewReceiver(gate.Receiving(reception), nil, audit.NewLog(st), ""), Executor: e, Calls: st, Logger: Quiet(),
		Slots: 64, SlotsPerTenant: 64})
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() error { return runner.Close(context.Background()) })
	many := limit.Config{KeyRate: 1 << 20, TenantRate: 1 << 20, RunRate: 1 << 20}
	r.Service, err = runnerapi.New(runnerapi.Config{Name: "runner-1", Runner: runner, Receptions: gate.Receiving(reception), Peers: peers, Limiter: limit.New(many), Logger: Quiet()})
	return r, err
}

// Close ends the runs and the executor.
func (r *Runner) Close() (err error) {
	for i := len(r.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, r.closers[i]())
	}
	r.closers = nil
	return err
}
