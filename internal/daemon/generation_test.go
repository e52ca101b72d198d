package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/serve/runs"
)

// Case 53: a generation whose run has ended is closed when the door has kept what came of
// it, and not before; else the key of a call that was answered stands for a running one.
func TestGenerationIsHeldUntilAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := gatecase.New(t)
		does := func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{Ending: executor.Exited(0)}, nil
		}
		runner, err := tracon.New(tracon.Config{Gate: gate.New(h.Config), Executor: executor.Func(does), Calls: h.Store, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		all, err := runs.New(runner, runs.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		keep := make(chan struct{})
		g := &generation{idle: make(chan struct{})}
		g.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			g.retire() // what is inside goes on
			if _, err := all.Start(r.Context(), h.Call, func(runs.View) { <-keep }); err != nil {
				t.Error(err)
			}
		})
		s := &server{}
		s.now.Store(g)
		s.answer(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/v1/runs", nil))
		synctest.Wait()
		select {
		case <-g.idle:
			t.Error("it may be closed, and the answer is not kept")
		default:
		}
		close(keep)
		<-g.idle
		g.hold()() // a session that outlives it holds nothing
		if err := all.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := runner.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
