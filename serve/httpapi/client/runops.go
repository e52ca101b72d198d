package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RunOptions say how long the server waits with its answer to a new run.
type RunOptions struct {
	// Detach has the run go on by itself when the client leaves. Without it and
	// without a Key, a client that leaves cancels the run.
	Detach bool

	// Wait is how long the answer to a detached run waits for its end, in whole
	// seconds. Zero: it comes when the run is admitted; below zero: at the end.
	Wait time.Duration

	// Key has the same run, sent again within 24 hours, run once; the answer is then
	// what came of it. The run goes on when the client leaves. Empty: none.
	Key string
}

func (o RunOptions) header() http.Header {
	h := http.Header{}
	if o.Key != "" {
		h.Set("Idempotency-Key", o.Key)
	}
	switch {
	case o.Detach && o.Wait < 0: // longer than any run
		h.Set("Prefer", "wait=86400")
	case o.Detach:
		h.Set("Prefer", "respond-async, wait="+strconv.Itoa(int(o.Wait/time.Second)))
	}
	return h
}

// StartRun starts a script, and returns what came of it, or how far it has come: see
// o. What was never started is a *Problem.
func (c *Client) StartRun(ctx context.Context, n NewRun, o RunOptions) (r Run, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/runs", body: n, header: o.header()}, &r)
	return r, err
}

// Runs returns the tenant's runs, the newest first, without their output: of one skill
// where skill is not empty, and at most limit where that is not zero.
func (c *Client) Runs(ctx context.Context, skill string, limit int) ([]Run, error) {
	return all[Run](ctx, c, "/v1/runs", params("skill", skill), limit)
}

// Run returns one run, with its output while that is kept.
func (c *Client) Run(ctx context.Context, id string) (Run, error) {
	return get[Run](ctx, c, path("v1", "runs", id), nil)
}

// CancelRun stops a run and returns it. One that has ended stays as it is.
func (c *Client) CancelRun(ctx context.Context, id string) (r Run, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: path("v1", "runs", id, "cancel")}, &r)
	return r, err
}

// RunOutput writes one file that the script wrote to w, while it is kept.
func (c *Client) RunOutput(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, request{method: http.MethodGet, path: path("v1", "runs", id, "output"), query: params("path", file)}, w)
}

// RunStream writes what the script wrote to a stream, stdout or stderr, to w, while it is
// kept.
func (c *Client) RunStream(ctx context.Context, id, stream string, w io.Writer) error {
	return c.download(ctx, request{method: http.MethodGet, path: path("v1", "runs", id, stream)}, w)
}

// Calls returns the records of the tenant's calls, the newest first: of one skill
// where skill is not empty, and at most limit where that is not zero.
func (c *Client) Calls(ctx context.Context, skill string, limit int) ([]Call, error) {
	return c.CallsBefore(ctx, skill, "", limit)
}

// CallsBefore is Calls for those that are older than the call before; empty: from the
// newest on.
func (c *Client) CallsBefore(ctx context.Context, skill, before string, limit int) ([]Call, error) {
	return all[Call](ctx, c, "/v1/calls", params("skill", skill, "before", before), limit)
}

// Call returns the record of one call.
func (c *Client) Call(ctx context.Context, id string) (Call, error) {
	return get[Call](ctx, c, path("v1", "calls", id), nil)
}

// Usage returns what the tenant's calls came to, by day and skill, the newest day
// first: of one skill where skill is not empty, and from and to a day, such as
// 2026-11-01, where these are not; and at most limit where that is not zero.
func (c *Client) Usage(ctx context.Context, skill, from, to string, limit int) ([]Usage, error) {
	return all[Usage](ctx, c, "/v1/usage", params("skill", skill, "from", from, "to", to), limit)
}

// A RunEvent is one thing that happened in a run.
type RunEvent struct {
	Seq    uint64 // by which FollowRun goes on behind it
	Kind   string // EventStarted, EventOutput, EventGap or EventEnd
	Output EventText
	Lost   EventLost
	Run    Run // of an EventEnd
}

// ErrEvents is wrapped by the error for a stream that ended before its run, or that
// cannot be read.
var ErrEvents = errors.New("client: the events of the run broke off")

// maxEvent is the most bytes of one event: a run with two streams, every byte escaped.
const maxEvent = 16 << 20

// FollowRun yields the events of a run behind the one with the number after, zero
// meaning all that the server still has, until its EventEnd. Events of a kind that
// this client does not know are passed over.
//
// When the connection breaks it yields an error that wraps ErrEvents: call it again
// with the last number. Any other error is the server's refusal.
func (c *Client) FollowRun(ctx context.Context, id string, after uint64) iter.Seq2[RunEvent, error] {
	return func(yield func(RunEvent, error) bool) {
		h := http.Header{"Accept": {"text/event-stream"}}
		if after > 0 {
			h.Set("Last-Event-ID", strconv.FormatUint(after, 10))
		}
		res, err := c.send(ctx, request{method: http.MethodGet, path: path("v1", "runs", id, "events"), header: h})
		if err != nil {
			yield(RunEvent{}, err)
			return
		}
		defer res.Body.Close()
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
			yield(RunEvent{}, fmt.Errorf("%w: the answer is %q", ErrEvents, kind))
			return
		}
		for e, err := range readEvents(res.Body) {
			if !yield(e, err) || err != nil || e.Kind == EventEnd {
				return
			}
		}
		yield(RunEvent{}, fmt.Errorf("%w: the connection ended", ErrEvents))
	}
}

// readEvents reads the form of server-sent events in which a server of ours writes
// them: lines that end with a line feed, and one line of data.
func readEvents(r io.Reader) iter.Seq2[RunEvent, error] {
	return func(yield func(RunEvent, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 4096), maxEvent)
		var seq, kind string
		var data []byte
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) > 0 {
				name, value, _ := bytes.Cut(line, []byte(":"))
				value = bytes.TrimPrefix(value, []byte(" "))
				switch string(name) {
				case "id":
					seq = string(value)
				case "event":
					kind = string(value)
				case "data":
					data = bytes.Clone(value)
				}
				continue
			}
			if data == nil { // a comment
				continue
			}
			e, ok, err := runEvent(seq, kind, data)
			if (ok || err != nil) && !yield(e, err) || err != nil {
				return
			}
			kind, data = "", nil
		}
		if err := lines.Err(); err != nil {
			yield(RunEvent{}, fmt.Errorf("%w: %w", ErrEvents, err))
		}
	}
}

// runEvent decodes one event; ok is false for one of a kind that is not known.
func runEvent(seq, kind string, data []byte) (e RunEvent, ok bool, err error) {
	e.Kind = kind
	var into any = &struct{}{}
	switch kind {
	case EventStarted:
	case EventOutput:
		into = &e.Output
	case EventGap:
		into = &e.Lost
	case EventEnd:
		into = &e.Run
	default:
		return RunEvent{}, false, nil
	}
	if e.Seq, err = strconv.ParseUint(strings.TrimSpace(seq), 10, 64); err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return RunEvent{}, false, fmt.Errorf("%w: an event cannot be read: %w", ErrEvents, err)
	}
	return e, true, nil
}
