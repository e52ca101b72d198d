package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
)

// heartbeat is how often a stream in which nothing happens shows that it is alive, and
// looks again whether its reader still may.
const heartbeat = 15 * time.Second

func (s *server) eventRoutes(run *huma.Schema) {
	schemas := s.api.OpenAPI().Components.Schemas
	for _, t := range []reflect.Type{reflect.TypeFor[client.EventText](), reflect.TypeFor[client.EventLost]()} {
		schemas.Schema(t, true, t.Name())
	}
	route(s, operation{id: "follow-run", method: http.MethodGet, path: "/v1/runs/{run}/events", tag: "runs", summary: "What a run writes, while it runs",
		about: "Server-sent events: started, output (an EventText), gap (an EventLost: output is missing here, because it came faster than it was read), " +
			"and last end, with the Run. Last-Event-ID goes on behind that event. A comment comes every 15 seconds. " +
			"What is shown is for looking at: the Run is the truth. The connection's end does not stop the run.",
		need: may(access.ReadRuns), answers: fileAnswer("text/event-stream", "the events")}, s.followRun)
}

func (s *server) followRun(ctx context.Context, p access.Principal, in *struct {
	ID    string `path:"run" maxLength:"64"`
	After string `header:"Last-Event-ID" maxLength:"20" pattern:"^[0-9]*$" doc:"the last event that was read"`
}) (*huma.StreamResponse, error) {
	var after uint64
	if in.After != "" {
		var err error
		if after, err = strconv.ParseUint(in.After, 10, 64); err != nil {
			return nil, problem(client.BadRequest, "Last-Event-ID is none of these events")
		}
	}
	f, err := s.Runs.Follow(p.Tenant, in.ID, after)
	switch {
	case errors.Is(err, runs.ErrNotFound):
		run, err := s.run(ctx, p.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		return stream(func(w *eventWriter) { w.event(client.EventEnd, after+1, run) }), nil
	case err != nil:
		return nil, busy(callOf(ctx).writer, err)
	}
	return stream(func(w *eventWriter) {
		defer f.Close()
		s.follow(ctx, f, w)
	}), nil
}

// follow writes events until the run has ended, the reader has left, or may no more:
// that is asked at each beat, however much the script prints.
func (s *server) follow(ctx context.Context, f *runs.Follower, w *eventWriter) {
	next := time.Now().Add(heartbeat)
	for w.err == nil {
		beat, stop := context.WithDeadline(ctx, next)
		e, err := f.Next(beat)
		stop()
		if ctx.Err() != nil || errors.Is(err, io.EOF) {
			return
		}
		if !time.Now().Before(next) {
			if !s.still(ctx) {
				return
			}
			next = time.Now().Add(heartbeat)
		}
		switch {
		case err != nil: // nothing happened
			w.comment()
		case e.Kind == runs.End:
			w.event(client.EventEnd, e.Seq, s.settled(ctx, toRun(f.View(), false)))
		default:
			w.runEvent(e)
		}
	}
}

// still reports whether who asked would be let in now as who they were: a key may be
// revoked meanwhile, and a token be another's (T11).
func (s *server) still(ctx context.Context) bool {
	c := callOf(ctx)
	p, err := s.authenticate(c.request, Again(s.Authenticator))
	return err == nil && p.Same(c.principal) && access.Check(ctx, s.Authorizer, p, access.ReadRuns) == nil
}

// eventTime is how long a reader may take nothing of a stream.
const eventTime = 30 * time.Second

// eventWriter writes server-sent events, each at once.
type eventWriter struct {
	w       io.Writer
	control *http.ResponseController
	err     error
}

func stream(write func(*eventWriter)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		c := callOf(ctx.Context())
		ctx.SetHeader("Content-Type", "text/event-stream")
		ctx.SetStatus(http.StatusOK)
		w := &eventWriter{w: c.writer, control: http.NewResponseController(c.writer)}
		w.comment()
		write(w)
	}}
}

func (w *eventWriter) runEvent(e runs.Event) {
	switch e.Kind {
	case runs.Started:
		w.event(client.EventStarted, e.Seq, struct{}{})
	case runs.Output:
		stream := "stdout"
		if e.Stream == gate.Stderr {
			stream = "stderr"
		}
		w.event(client.EventOutput, e.Seq, client.EventText{Stream: stream, Text: e.Text})
	case runs.Gap:
		w.event(client.EventGap, e.Seq, client.EventLost{Bytes: e.Lost})
	}
}

// event writes one event. JSON has no line feed in it, so the data is one line.
func (w *eventWriter) event(name string, seq uint64, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		w.err = err
		return
	}
	w.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", seq, name, text))
}

func (w *eventWriter) comment() { w.write(":\n\n") }

func (w *eventWriter) write(s string) {
	if w.err != nil {
		return
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(eventTime)) // where there is one
	if _, w.err = io.WriteString(w.w, s); w.err == nil {
		w.err = w.control.Flush()
	}
}
