package fleet_test

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/wire"
)

// R30: a run travels within its begin to a runner that says that it takes
// it so, and is handed over before to one that does not, or where it is large. It travels
// once (R21).
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		offers string // at the place
		input  int    // bytes
		whole  bool
	}{
		{"a runner that takes it", "1", 1, true},
		{"a runner of before", "", 1, false},
		{"another word", "yes", 1, false},
		{"a large run", "1", 1 << 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "one")
			e := g.executor(nil)
			var begins, puts atomic.Int32
			var handed []byte // of the one callback
			g.rawRunnerThat("one", func(c *nats.Conn) map[string]func(*nats.Msg) *nats.Msg {
				return map[string]func(*nats.Msg) *nats.Msg{
					at + "offer.>": func(*nats.Msg) *nats.Msg {
						return message(`{"runner":"one","member":"0","lacks":false}`, "Tracon-Whole", tt.offers)
					},
					at + "at.one.0.*": func(m *nats.Msg) *nats.Msg {
						switch m.Subject {
						case at + "at.one.0.put":
							puts.Add(1)
							handed = append(handed, m.Data...)
							return message("")
						case at + "at.one.0.begin":
							begins.Add(1)
						default:
							return nil
						}
						if m.Header.Get("Tracon-Session") != "" {
							handed = append(handed, m.Data...)
						}
						run, err := wire.ReadRun(bytes.NewReader(handed), wire.MaxRun)
						if err != nil {
							t.Error(err)
							return nil
						}
						b, err := exits(run, "ran").Encode()
						if err != nil {
							t.Error(err)
						}
						return message(string(b), "Tracon-Kind", "answer", "Tracon-Run", run.More.ID, "Tracon-Size", strconv.Itoa(len(b)), "Tracon-SHA256", hash(b))
					},
				}
			})
			res, err := e.Execute(t.Context(), g.request(executortest.Order{Inputs: []bundle.File{{Path: "in", Data: make([]byte, tt.input)}}}))
			if err != nil || string(res.Stdout) != "ran" {
				t.Fatalf("got %q, %v", res.Stdout, err)
			}
			if n := puts.Load(); begins.Load() != 1 || tt.whole != (n == 0) {
				t.Errorf("it began %d times, with %d parts handed over before; want once, and within its begin: %t", begins.Load(), n, tt.whole)
			}
		})
	}
}
