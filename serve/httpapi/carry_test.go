package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// writes is an executor whose scripts write these files, and print the text.
func writes(text string, files ...bundle.File) executor.Executor {
	return executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte(text), Outputs: files}, nil
	})
}

// slowly sends the run as the operator of the tenant acme, who takes nothing of the answer until
// taken is closed. It returns once the answer has begun.
func (h *house) slowly(all *sync.WaitGroup, n client.NewRun, key string, taken <-chan struct{}) *untaken {
	h.Helper()
	body, err := json.Marshal(n)
	h.must(err)
	began := make(chan struct{}, 1)
	u := &untaken{ResponseRecorder: httptest.NewRecorder(), began: began, taken: taken}
	r := httptest.NewRequestWithContext(h.Context(), "POST", "/v1/runs", bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer operator")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	all.Go(func() { h.handler.ServeHTTP(u, r) })
	<-began
	return u
}

// B10: of 500 who asked for the files of their runs and read nothing, few have them
// in memory, those too that ask again by their key. The others' runs are told
// with all but the data, and with where that is; getting it takes a place.
func TestRunsThatNobodyReads(t *testing.T) {
	data := bytes.Repeat([]byte("x"), DefaultMaxBody+1)
	h := newHouseOver(t, writes("hello\n", bundle.File{Path: "a.bin", Data: data}))
	h.grant("acme")
	h.grant("globex")
	n := hello
	n.OutputData = true
	var whole client.Run
	h.by("operator", "key-1", n).into(200, &whole)
	if len(whole.Outputs) != 1 || !bytes.Equal(whole.Outputs[0].Data, data) || whole.OutputLeftOut {
		t.Fatal("the first run came without its file")
	}

	taken := make(chan struct{})
	var all sync.WaitGroup
	var answers []*untaken
	for i := range 500 {
		key := ""
		if i%25 == 0 {
			key = "key-1"
		}
		answers = append(answers, h.slowly(&all, n, key, taken))
	}
	if u := &h.inside.uploads; u.all != uploadsPerTenant || u.tenant["acme"] != uploadsPerTenant {
		t.Errorf("500 answers have %d places, %d of the tenant; want %d", u.all, u.tenant["acme"], uploadsPerTenant)
	}
	file := answers[499].Header().Get("Location") + "/output?path=a.bin"
	p := h.ask("operator", "GET", file, nil)
	if p.problem(client.Busy); p.header.Get("Retry-After") == "" {
		t.Error("who is to come again is not told when")
	}
	var other client.Run
	h.ask("other", "POST", "/v1/runs", n).into(200, &other)
	if other.OutputLeftOut || len(other.Outputs[0].Data) != len(data) {
		t.Error("another tenant's run came without its file")
	}

	close(taken)
	all.Wait()
	got := 0
	for i, u := range answers {
		var run client.Run
		if err := json.Unmarshal(u.Body.Bytes(), &run); err != nil || u.Code != http.StatusOK || len(run.Outputs) != 1 || run.Outputs[0].Size != int64(len(data)) ||
			run.Stdout == nil || *run.Stdout != "hello\n" || (u.Header().Get("Tracon-Replayed") == "true") != (i%25 == 0) {
			t.Fatalf("the answer %d: %d %.300s", i, u.Code, u.Body)
		}
		has := bytes.Equal(run.Outputs[0].Data, data)
		if has {
			got++
		}
		if has == run.OutputLeftOut || !has && len(run.Outputs[0].Data) > 0 {
			t.Errorf("the answer %d has %d bytes, and says left out: %v", i, len(run.Outputs[0].Data), run.OutputLeftOut)
		}
	}
	if got != uploadsPerTenant {
		t.Errorf("%d answers have the file, want %d", got, uploadsPerTenant)
	}
	if u := &h.inside.uploads; len(u.tenant) != 0 || u.all != 0 {
		t.Errorf("left: %v, %d", u.tenant, u.all)
	}
	if got := h.ask("operator", "GET", file, nil).into(200, nil); !bytes.Equal(got.body, data) {
		t.Errorf("what was left out has %d bytes, want %d", len(got.body), len(data))
	}
}

// B10: streams that a policy lets be large take places as files do; those of the default
// limit go with every answer.
func TestStreamsThatNobodyReads(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes int
		goes  bool
	}{{"of the default limit", gate.DefaultMaxOutput, true}, {"larger", streamsGoing + 1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Repeat("y", tt.bytes)
			h := newHouseOver(t, writes(text))
			h.grant("acme")
			_, err := h.admin.SetPolicy(t.Context(), "test", "acme", func(p *gate.Policy) error { p.MaxOutput = tt.bytes; return nil })
			h.must(err)
			taken := make(chan struct{})
			var all sync.WaitGroup
			for range uploadsPerTenant {
				h.slowly(&all, hello, "", taken)
			}
			var run client.Run
			h.ask("operator", "POST", "/v1/runs", hello).into(200, &run)
			if (run.Stdout != nil) != tt.goes || run.OutputLeftOut == tt.goes || run.StdoutBytes != len(text) || run.ExitCode == nil {
				t.Errorf("it has a stream: %v, left out: %v, of %d bytes", run.Stdout != nil, run.OutputLeftOut, run.StdoutBytes)
			}
			close(taken)
			all.Wait()
			if got := h.ask("operator", "GET", "/v1/runs/"+run.ID+"/stdout", nil).into(200, nil); string(got.body) != text {
				t.Errorf("the stream has %d bytes, want %d", len(got.body), len(text))
			}
		})
	}
}

// Case 53: of files that were too large to be kept with the outcome of a key, who asks
// again is told where they are.
func TestKeyOfLargeFiles(t *testing.T) {
	h := newHouseOver(t, writes("", bundle.File{Path: "a.bin", Data: make([]byte, 1<<20)}))
	h.grant("acme")
	n := hello
	n.OutputData = true
	var first, again client.Run
	h.by("operator", "key-1", n).into(200, &first)
	h.renew() // which waits until the outcome is kept
	h.by("operator", "key-1", n).into(200, &again)
	if first.OutputLeftOut || len(first.Outputs[0].Data) != 1<<20 {
		t.Error("the first came without its file")
	}
	if !again.OutputLeftOut || again.ID != first.ID || len(again.Outputs) != 1 || again.Outputs[0].Data != nil || again.Outputs[0].Size != 1<<20 {
		t.Errorf("the second is left out: %v, with %d files", again.OutputLeftOut, len(again.Outputs))
	}
}
