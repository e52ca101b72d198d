package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
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

// model is a client of the Model Context Protocol with a session, written here so that
// it sees what goes over the wire.
type model struct {
	t            *testing.T
	address, key string
	session      string
	next         atomic.Int64
	http         http.Client
}

func (s *served) model(key string) *model {
	s.t.Helper()
	m := &model{t: s.t, address: s.Address + "/mcp", key: key}
	m.begin()
	return m
}

func (m *model) begin() {
	m.t.Helper()
	m.session = ""
	status, _ := m.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
	if status != http.StatusOK {
		m.t.Fatalf("no session: %d", status)
	}
}

// ask sends a request and returns the status and the message that answers it.
func (m *model) ask(method string, params any) (int, map[string]any) {
	m.t.Helper()
	id := m.next.Add(1)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		m.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.address, strings.NewReader(string(body)))
	if err != nil {
		m.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+m.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if m.session != "" {
		r.Header.Set("Mcp-Session-Id", m.session)
	}
	res, err := m.http.Do(r)
	if err != nil {
		m.t.Error(err)
		return 0, nil
	}
	defer res.Body.Close()
	if s := res.Header.Get("Mcp-Session-Id"); s != "" {
		m.session = s
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer map[string]any
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &answer) == nil && answer["id"] == float64(id) {
			return res.StatusCode, answer
		}
	}
	return res.StatusCode, nil
}

// run runs the script and returns its output and the call's id.
func (m *model) run(arguments ...string) (stdout, call string) {
	m.t.Helper()
	status, answer := m.ask("tools/call", map[string]any{"name": "run_skill_script", "arguments": map[string]any{"skill": "s", "script": "s.sh", "arguments": arguments}})
	result, _ := answer["result"].(map[string]any)
	told, _ := result["structuredContent"].(map[string]any)
	stream, _ := told["stdout"].(map[string]any)
	stdout, _ = stream["text"].(string)
	call, _ = told["call"].(string)
	if status != http.StatusOK || call == "" {
		m.t.Errorf("%d: %v", status, answer)
	}
	return stdout, call
}

func (s *served) key(tenant, name, role string) string {
	s.t.Helper()
	key, err := s.as(tenant).CreateKey(s.t.Context(), "", client.NewKey{Name: name, Roles: []string{role}})
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Secret
}

// A model uses a server with a key: it is offered what its tenant may run, another tenant
// is not; a reload has it begin anew; and a server that stops lets a call end first.
func TestServeModels(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_PUBLIC_URL": "https://tracon.example"}).start()
	operator := s.setUp("acme", holding)
	if _, err := s.as("").CreateTenant(t.Context(), client.NewTenant{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	acme, other := s.model(s.key("acme", "bot", "operator")), s.model(s.key("other", "bot", "operator"))
	if _, answer := acme.ask("tools/list", nil); !strings.Contains(fmt.Sprint(answer), "run_skill_script") {
		t.Errorf("%v", answer)
	}
	if _, answer := other.ask("tools/list", nil); strings.Contains(fmt.Sprint(answer), "name:") {
		t.Errorf("another tenant has %v", answer)
	}
	if out, _ := acme.run("/dev/null"); out != "begun\nwent-on\n" {
		t.Errorf("it wrote %q", out)
	}
	res, err := http.Get(s.Address + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Resource string }
	err = json.NewDecoder(res.Body).Decode(&about)
	res.Body.Close()
	if err != nil || about.Resource != "https://tracon.example/mcp" {
		t.Errorf("the resource is %+v, %v", about, err)
	}

	s.signal(syscall.SIGHUP)
	eventually(t, "the session has gone with what was before the reload", func() bool {
		status, _ := acme.ask("tools/list", nil)
		return status == http.StatusNotFound
	})
	acme.begin()
	pipe := s.folder + "/held"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	type answer struct{ out, call string }
	ended := make(chan answer, 1)
	go func() { out, call := acme.run(pipe); ended <- answer{out, call} }()
	// It can be opened without waiting when the script reads it.
	var w *os.File
	eventually(t, "the script runs", func() bool {
		w, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	// The tenant sees it among its runs, and could stop it.
	if list, err := operator.Runs(t.Context(), "", 20); err != nil || !slices.ContainsFunc(list, func(r client.Run) bool { return r.State == client.RunRunning }) {
		t.Errorf("the runs are %+v, %v", list, err)
	}
	s.signal(syscall.SIGTERM)
	s.said("stopping")
	w.Close()
	if got := <-ended; got.out != "begun\nwent-on\n" {
		t.Errorf("the call that was under way has %+v", got)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

// Case 61: the same refused call again and again: each is refused, the log holds fewer
// entries than there were calls, and in the end the answer is to wait. Case 59: each tells
// the names that there are.
func TestServeModelsRefused(t *testing.T) {
	s := newServed(t, nil).start()
	operator := s.setUp("acme", "echo ran\n")
	m := s.model(s.key("acme", "bot", "operator"))
	refused, waits := 0, 0
	for waits == 0 {
		status, answer := m.ask("tools/call", map[string]any{"name": "run_skill_script", "arguments": map[string]any{"skill": "s", "script": "wrong.sh"}})
		if status == http.StatusTooManyRequests {
			waits++
			continue
		}
		result, _ := answer["result"].(map[string]any)
		told, _ := result["structuredContent"].(map[string]any)
		switch {
		case result["isError"] == true && told["status"] == "rate_limited":
			waits++
		case result["isError"] == true && told["status"] == "name" && fmt.Sprint(told["names"]) == "[s.sh]":
			refused++
		default:
			t.Fatalf("%d %v", status, answer)
		}
	}
	page, err := operator.Entries(t.Context(), client.EntryFilter{Kinds: []string{"refusal"}}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	if refused < 2 || len(page.Items) == 0 || len(page.Items) >= refused {
		t.Errorf("%d refusals are %d entries of the log", refused, len(page.Items))
	}
	if list, err := operator.Calls(t.Context(), "", 10); err != nil || len(list) != 0 {
		t.Errorf("%d calls ran, %v", len(list), err)
	}
}

// B10, R21: of the calls of a model, over one session and over many, each runs once and has
// its own answer. With TRACON_LOAD=full there are 4,000 of each, beside as many over the
// management API, and the test says how long each took.
func TestServeModelsUnderLoad(t *testing.T) {
	calls, many := 60, 6
	if os.Getenv("TRACON_LOAD") == "full" {
		calls, many = 4000, 50
	}
	s := newServed(t, map[string]string{"TRACON_SLOTS": "8", "TRACON_SLOTS_PER_TENANT": "8", "TRACON_SLOT_WAIT": "1h",
		"TRACON_RATE_KEY": "1000000", "TRACON_RATE_TENANT": "1000000", "TRACON_RATE_RUNS": "1000000"}).start()
	operator := s.setUp("acme", "echo \"$1\"\n")
	key := s.key("acme", "load", "operator")
	seen := map[string]bool{}
	for _, sessions := range []int{1, many} {
		models := make([]*model, sessions)
		for i := range models {
			models[i] = s.model(key)
		}
		api := s.with(key)
		took := map[string][]time.Duration{}
		for _, way := range []string{"tools", "API"} {
			ids, times := make([]string, calls), make([]time.Duration, calls)
			var next atomic.Int64
			var wg sync.WaitGroup
			for _, m := range models {
				wg.Go(func() {
					for i := int(next.Add(1)) - 1; i < calls; i = int(next.Add(1)) - 1 {
						began := time.Now()
						out := ""
						if way == "tools" {
							out, ids[i] = m.run(strconv.Itoa(i))
						} else if run, err := api.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage(`["` + strconv.Itoa(i) + `"]`)}, client.RunOptions{}); err != nil {
							t.Error(err)
						} else {
							out, ids[i] = *run.Stdout, run.ID
						}
						times[i] = time.Since(began)
						if out != strconv.Itoa(i)+"\n" {
							t.Errorf("call %d has %q", i, out)
						}
					}
				})
			}
			wg.Wait()
			slices.Sort(times)
			took[way] = times
			for i, id := range ids {
				if id == "" || seen[id] {
					t.Errorf("call %d has the id %q, and so has another", i, id)
				}
				seen[id] = true
			}
		}
		half, most := took["tools"][calls/2].Seconds()/took["API"][calls/2].Seconds(), took["tools"][calls*99/100].Seconds()/took["API"][calls*99/100].Seconds()
		t.Logf("%d calls over %d sessions: median %v, 99 of 100 within %v; by the API %v and %v; ratio %.2f and %.2f", calls, sessions,
			took["tools"][calls/2], took["tools"][calls*99/100], took["API"][calls/2], took["API"][calls*99/100], half, most)
	}
	records, err := operator.Calls(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		delete(seen, r.ID)
	}
	if len(seen) > 0 {
		t.Errorf("%d calls have no record", len(seen))
	}
}
