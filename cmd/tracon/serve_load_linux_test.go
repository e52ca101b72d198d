package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A load is what many clients ask of one server at once.
type load struct {
	calls       int
	connections int
	slow        int // connections beside them that begin a request and go no further
}

// With TRACON_LOAD=full the test asks what an operator may expect of two processors,
// without and with slow connections beside it, and says what it measured.
func loads() []load {
	if os.Getenv("TRACON_LOAD") == "full" {
		return []load{{5000, 200, 0}, {5000, 200, 500}}
	}
	return []load{{120, 30, 40}}
}

// B10, R16, R21, case 53: of calls that come from many connections at once each runs once,
// each answer is that of its own call, one that is sent twice with a key runs once, and
// there is one record for each; reads are answered meanwhile, and connections that hang
// change nothing and leave nothing.
func TestServeUnderLoad(t *testing.T) {
	for _, l := range loads() {
		t.Run(fmt.Sprintf("%d calls from %d connections beside %d slow ones", l.calls, l.connections, l.slow), func(t *testing.T) {
			s := newServed(t, map[string]string{"TRACON_SLOTS": "8", "TRACON_SLOTS_PER_TENANT": "8", "TRACON_SLOT_WAIT": "1h",
				"TRACON_RATE_KEY": "1000000", "TRACON_RATE_TENANT": "1000000", "TRACON_RATE_RUNS": "1000000"}).start()
			operator := s.setUp("acme", "echo \"$1\"\n")
			key, err := operator.CreateKey(t.Context(), "", client.NewKey{Name: "load", Roles: []string{"operator"}})
			if err != nil {
				t.Fatal(err)
			}
			sockets := s.sockets()
			stopSlow := slowConnections(t, strings.TrimPrefix(s.Address, "http://"), l.slow)
			stopReads := readMeanwhile(t, s.with(key.Secret))
			began := time.Now()
			ids := s.runAll(key.Secret, l)
			took := time.Since(began)
			reads := stopReads()
			stopSlow()
			eventually(t, "no more sockets are open than before, but that of who read", func() bool { return s.sockets() <= sockets+1 })

			seen := map[string]bool{}
			for i, id := range ids {
				if id == "" || seen[id] {
					t.Errorf("call %d has the run %q, and so has another", i, id)
				}
				seen[id] = true
			}
			records, err := operator.Calls(t.Context(), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if !seen[r.ID] || r.ExitCode == nil || *r.ExitCode != 0 {
					t.Errorf("there is a record of %+v", r)
				}
				delete(seen, r.ID)
			}
			if len(seen) > 0 || len(records) != l.calls {
				t.Errorf("%d records, want %d; none of %v", len(records), l.calls, seen)
			}
			slices.Sort(reads)
			t.Logf("%d calls in %v, %.0f a second; reads meanwhile: %d, half in %v, 99 of 100 in %v; the server's peak: %s, now %s",
				l.calls, took.Round(time.Millisecond), float64(l.calls)/took.Seconds(), len(reads), reads[len(reads)/2], reads[len(reads)*99/100],
				s.memory("VmHWM"), s.memory("VmRSS"))
			s.signal(syscall.SIGTERM)
			if code := s.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// runAll makes the calls over that many connections, and returns the id of each one's
// run. Every tenth is sent twice, with a key.
func (s *served) runAll(secret string, l load) []string {
	t := s.t
	ids := make([]string, l.calls)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range l.connections {
		wg.Go(func() {
			transport := &http.Transport{MaxConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			c, err := client.New(client.Config{Server: s.Address, Key: secret, Transport: transport})
			if err != nil {
				t.Error(err)
				return
			}
			for {
				i := int(next.Add(1)) - 1
				if i >= l.calls {
					return
				}
				o, times := client.RunOptions{}, 1
				if i%10 == 0 {
					o.Key, times = "key-"+strconv.Itoa(i), 2
				}
				for range times {
					arguments, _ := json.Marshal([]string{strconv.Itoa(i)}) // of strings it cannot fail
					run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: arguments}, o)
					switch {
					case err != nil || run.Stdout == nil || *run.Stdout != strconv.Itoa(i)+"\n":
						t.Errorf("call %d: %+v, %v", i, run, err)
					case ids[i] != "" && ids[i] != run.ID:
						t.Errorf("call %d ran twice, as %s and %s", i, ids[i], run.ID)
					}
					ids[i] = run.ID
				}
			}
		})
	}
	wg.Wait()
	return ids
}

// readMeanwhile reads the list of runs again and again, until it is stopped, and
// returns how long each time took.
func readMeanwhile(t *testing.T, c *client.Client) (stop func() []time.Duration) {
	var all []time.Duration
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			began := time.Now()
			if _, err := c.Runs(t.Context(), "", 20); err != nil {
				t.Error(err)
				return
			}
			all = append(all, time.Since(began))
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() []time.Duration {
		close(over)
		<-ended
		return append(all, 0)
	}
}

// slowConnections opens n connections that begin a request and wait until the server
// has enough of them, then come again, until it is stopped.
func slowConnections(t *testing.T, address string, n int) (stop func()) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range n {
		wg.Go(func() {
			for {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				left := make(chan struct{})
				go func() {
					defer close(left)
					_, _ = io.WriteString(conn, "GET /v1/runs HTTP/1.1\r\nHost: tracon\r\nX-Slow: ")
					_, _ = io.Copy(io.Discard, conn)
				}()
				select {
				case <-left:
					_ = conn.Close()
				case <-over:
					_ = conn.Close()
					<-left
					return
				}
			}
		})
	}
	return func() {
		close(over)
		wg.Wait()
	}
}

// sockets is how many the server has open.
func (s *served) sockets() (n int) {
	s.t.Helper()
	folder := filepath.Join("/proc", strconv.Itoa(s.process.Pid), "fd")
	list, err := os.ReadDir(folder)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, fd := range list {
		if to, err := os.Readlink(filepath.Join(folder, fd.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// memory returns a line of the server's status, such as its peak.
func (s *served) memory(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.process.Pid), "status"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), name+":")
	line, _, _ = strings.Cut(line, "\n")
	return strings.TrimSpace(line)
}
