package remote_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

const shows = `{"name":"runner-1","protocols":["tracon/1","tracon-live/1"],"tier":"process","claimed":true,"maxInline":65536}`

// watched is a request that somebody follows.
func watched(t testing.TB, chunks int) (executor.Request, *gate.Live) {
	t.Helper()
	live := gate.NewLive(chunks)
	return admit(t, func(o *executortest.Order) { o.Live = live }), live
}

// shown is what whoever follows the request saw, of both streams.
func shown(live *gate.Live) (text string) {
	live.Close()
	for c := range live.Chunks() {
		text += string(c.Data)
	}
	return text
}

// A liar answers by frames, as it likes.
type liar struct {
	t   testing.TB
	w   http.ResponseWriter
	r   *http.Request
	run wire.Run
}

func lying(t testing.TB, f func(*liar)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run, err := wire.ReadRun(r.Body, 0)
		if err != nil || run.More == nil {
			t.Errorf("got %+v, %v", run, err)
			return
		}
		w.Header().Set("Content-Type", wire.LiveType)
		f(&liar{t, w, r, run})
	}
}

func (l *liar) say(text string) {
	_, _ = io.WriteString(l.w, text)
	_ = http.NewResponseController(l.w).Flush()
}

func (l *liar) output(id string, offset int, data string) {
	l.say(fmt.Sprintf(`{"output":{"id":%q,"stream":"stdout","offset":%d,"data":%q}}`+"\n", id, offset, base64.StdEncoding.EncodeToString([]byte(data))))
}

// answer says that the script wrote "the truth".
func (l *liar) answer() {
	code := 0
	line, err := wire.Frame{Answer: &wire.Answer{ExitCode: &code, StandardOutput: "the truth", More: &wire.AnswerMore{
		ID: l.run.More.ID, Bundle: l.run.More.Bundle, Ending: wire.Ending{Kind: "exited"}, Tier: "process"}}}.Encode()
	if err != nil {
		l.t.Error(err)
	}
	l.say(string(line))
}

// M01, M02, M06, R21, R26, case 55: what a runner shows is of this run and within its
// bounds, or the run ends as an error that says that the script may have run; what it
// shows is never what the answer says.
func TestShows(t *testing.T) {
	for _, tt := range []struct {
		name string
		runs func(*liar)
		kind remote.Kind // empty: it is answered
		text string      // that was seen
	}{
		{"output, and the answer", func(l *liar) { l.output(l.run.More.ID, 0, "so far"); l.answer() }, "", "so far"},
		{"output that the answer has not", func(l *liar) { l.output(l.run.More.ID, 0, "invented"); l.answer() }, "", "invented"},
		{"the answer alone", func(l *liar) { l.answer() }, "", ""},
		{"M01: output of another run", func(l *liar) { l.output("another", 0, "x"); l.answer() }, remote.Violation, ""},
		{"M02: more output than was asked for", func(l *liar) {
			l.output(l.run.More.ID, 0, "x")
			l.output(l.run.More.ID, 1, strings.Repeat("y", 4096))
			l.answer()
		}, remote.Violation, "x"},
		{"M01: the same output twice", func(l *liar) { l.output(l.run.More.ID, 0, "x"); l.output(l.run.More.ID, 0, "x"); l.answer() }, remote.Violation, "x"},
		{"M01: output behind the end", func(l *liar) { l.answer(); l.output(l.run.More.ID, 0, "x") }, remote.Garbled, ""},
		{"M01: two answers", func(l *liar) { l.answer(); l.answer() }, remote.Garbled, ""},
		{"M01: an answer of another run", func(l *liar) { l.run.More.ID = "another"; l.answer() }, remote.Violation, ""},
		{"not of the form", func(l *liar) { l.say("<html>\n") }, remote.Garbled, ""},
		{"the answer as it is without frames", func(l *liar) { l.say(`{"exitCode":0,"standardOutput":"","standardError":""}` + "\n") }, remote.Garbled, ""},
		{"M02: a line without end", func(l *liar) {
			for l.r.Context().Err() == nil {
				l.say(strings.Repeat("x", 64<<10))
			}
		}, remote.TooLarge, ""},
		{"M02: output of nothing, without end", func(l *liar) {
			for l.r.Context().Err() == nil {
				l.output(l.run.More.ID, 0, "")
			}
		}, remote.Violation, ""},
		{"no end", func(l *liar) { l.output(l.run.More.ID, 0, "x") }, remote.HungUp, "x"},
		{"case 55: the runner dies", func(l *liar) { l.output(l.run.More.ID, 0, "x"); panic(http.ErrAbortHandler) }, remote.HungUp, "x"},
		{"it fails", func(l *liar) {
			l.output(l.run.More.ID, 0, "x")
			l.say(`{"problem":{"status":500,"code":"executor_failed"}}` + "\n")
		}, remote.Status, "x"},
		{"M06: nothing was started, it says, behind its output", func(l *liar) {
			l.output(l.run.More.ID, 0, "x")
			l.say(`{"problem":{"status":503,"code":"busy","notStarted":true}}` + "\n")
		}, remote.Status, "x"},
		{"M06, R21: and it wants the run again", func(l *liar) {
			l.say(`{"problem":{"status":409,"code":"bundle_unknown","notStarted":true}}` + "\n")
		}, remote.Status, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, shows, lying(t, tt.runs))
			req, live := watched(t, 0)
			res, err := open(t, f.URL, nil).Execute(t.Context(), req)
			if tt.kind != "" {
				check(t, err, tt.kind, true)
			} else if err != nil || string(res.Stdout) != "the truth" {
				t.Errorf("got %q, %v", res.Stdout, err)
			}
			if got := shown(live); got != tt.text || f.runs.Load() != 1 {
				t.Errorf("saw %q, want %q; asked %d times", got, tt.text, f.runs.Load())
			}
		})
	}
}

// The output is seen while the script runs, and a follower who takes nothing keeps
// neither the run nor its answer.
func TestSeenMeanwhile(t *testing.T) {
	let := make(chan struct{})
	f := newFake(t, shows, lying(t, func(l *liar) {
		l.output(l.run.More.ID, 0, "so far")
		<-let
		for i := range 100 {
			l.output(l.run.More.ID, 6+i, "x")
		}
		l.answer()
	}))
	e := open(t, f.URL, nil)
	req, live := watched(t, 1)
	came := make(chan error, 1)
	go func() {
		_, err := e.Execute(t.Context(), req)
		came <- err
	}()
	select {
	case c := <-live.Chunks():
		if string(c.Data) != "so far" {
			t.Errorf("saw %q", c.Data)
		}
	case err := <-came:
		t.Fatalf("it ended before anything was seen: %v", err)
	}
	close(let)
	if err := <-came; err != nil {
		t.Error(err)
	}
	if got := len(shown(live)); int64(got)+live.Dropped() != 100 {
		t.Errorf("saw %d bytes, and %d are told as lost, want 100 in all", got, live.Dropped())
	}
}

// R30: a runner is asked to show output where it says that it can, and somebody follows;
// one that does not all the same serves as ever.
func TestAsksToBeShown(t *testing.T) {
	for _, tt := range []struct {
		name, info string
		follows    bool
		accept     string
	}{
		{"it shows, and somebody follows", shows, true, wire.LiveType + ", application/json"},
		{"it shows, and nobody follows", shows, false, "application/json"},
		{"it does not show", knows, true, "application/json"},
		{"it shows, and knows no member", strings.Replace(shows, `"tracon/1",`, "", 1), true, "application/json"},
		{"it tells nothing", "", true, "application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, tt.info, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Values("Accept"); !slices.Equal(got, []string{tt.accept}) {
					t.Errorf("it accepts %q, want %q", got, tt.accept)
				}
				_, _ = w.Write(good(t, r, nil))
			})
			req, live := watched(t, 0)
			if !tt.follows {
				req = admit(t, nil)
			}
			if res, err := open(t, f.URL, nil).Execute(t.Context(), req); err != nil || res.Ending != executor.Exited(0) {
				t.Errorf("got %v, %v", res.Ending, err)
			}
			if got := shown(live); got != "" {
				t.Errorf("saw %q", got)
			}
		})
	}
	// One that shows unasked speaks another wire.
	f := newFake(t, knows, lying(t, func(l *liar) { l.output(l.run.More.ID, 0, "x"); l.answer() }))
	req, live := watched(t, 0)
	_, err := open(t, f.URL, nil).Execute(t.Context(), req)
	check(t, err, remote.Garbled, true)
	if got := shown(live); got != "" {
		t.Errorf("saw %q", got)
	}
}

// R24: the caller's cancellation ends an answer that shows output, and the runner learns
// of it.
func TestCancelledMeanwhile(t *testing.T) {
	enough, gone := errors.New("enough"), make(chan struct{})
	f := newFake(t, shows, lying(t, func(l *liar) {
		l.output(l.run.More.ID, 0, "x")
		<-l.r.Context().Done()
		close(gone)
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	req, live := watched(t, 0)
	go func() {
		<-live.Chunks()
		cancel(enough)
	}()
	if _, err := open(t, f.URL, nil).Execute(ctx, req); err != enough {
		t.Errorf("got %v, want the cause", err)
	}
	<-gone
}
