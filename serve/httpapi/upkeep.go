package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

func (s *server) upkeepRoutes() {
	read, write := may(access.ReadPlatform), may(access.WritePlatform)
	route(s, operation{id: "check-kept", method: http.MethodPost, path: "/v1/fsck", tag: "host", summary: "Check that everything that is kept agrees with the log",
		about: "It repairs nothing. One is done at a time, and it ends when nobody waits for it any more. The answer has the first 500 findings, and counts all.", need: read}, s.checkKept)
	route(s, operation{id: "get-retention", method: http.MethodGet, path: "/v1/retention", tag: "host", summary: "How long what is kept beside the log stays", need: read}, s.getRetention)
	route(s, operation{id: "preview-retention", method: http.MethodPost, path: "/v1/retention/preview", tag: "host", summary: "Count what is over its time; it changes nothing",
		about: "A time that is not said is the host's own; zero keeps for ever.", need: read}, s.previewRetention)
	route(s, operation{id: "apply-retention", method: http.MethodPost, path: "/v1/retention/apply", tag: "host", summary: "Erase what is over its time, of every tenant",
		about: "A time that is not said is the host's own; zero keeps for ever. Each erasure has its entry in the log, in the same transaction. What is erased does not come back.", need: write}, s.applyRetention)
	route(s, operation{id: "rotate-log-key", method: http.MethodPost, path: "/v1/audit/rotate-key", tag: "audit", summary: "Replace the key that signs the log",
		about: "The log has a statement, signed by both keys, that the new one goes on.", need: write}, s.rotateLogKey)
}

// aside waits for the one turn of what reads everything that is kept, or takes it away.
func (s *server) aside(ctx context.Context) (done func(), err error) {
	waiting, stop := context.WithTimeoutCause(ctx, heavyWait, errBusy)
	defer stop()
	select {
	case s.upkeep <- struct{}{}:
		return func() { <-s.upkeep }, nil
	case <-waiting.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, problem(client.Busy, "somebody else's check or erasure is under way; try again")
}

func (s *server) checkKept(ctx context.Context, _ access.Principal, _ *struct{}) (*answer[client.Checked], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	done, err := s.aside(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := s.Host.Fsck(ctx)
	if err != nil {
		return nil, err
	}
	if !out.OK {
		s.Logger.ErrorContext(ctx, "what is kept does not agree with the log", "request", RequestID(ctx), "findings", out.Report.Findings)
	}
	return &answer[client.Checked]{out}, nil
}

func (s *server) getRetention(context.Context, access.Principal, *struct{}) (*answer[client.Retention], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	return &answer[client.Retention]{s.Host.Retention()}, nil
}

func (s *server) previewRetention(ctx context.Context, p access.Principal, in *struct{ Body client.Retention }) (*answer[client.Erasure], error) {
	return s.erase(ctx, p, in.Body, true)
}

func (s *server) applyRetention(ctx context.Context, p access.Principal, in *struct{ Body client.Retention }) (*answer[client.Erasure], error) {
	return s.erase(ctx, p, in.Body, false)
}

func (s *server) erase(ctx context.Context, p access.Principal, r client.Retention, preview bool) (*answer[client.Erasure], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	done, err := s.aside(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	e, err := s.Host.Erase(ctx, p.Actor, r, preview)
	if err != nil {
		return nil, err
	}
	return &answer[client.Erasure]{e}, nil
}

func (s *server) rotateLogKey(ctx context.Context, p access.Principal, in *struct{ Body client.LogKeyRotation }) (*answer[client.LogKey], error) {
	if s.Notary == nil {
		return nil, errNotOffered()
	}
	key, err := s.Notary.Rotate(ctx, p.Actor, in.Body.Reason)
	lost := errors.Is(err, notary.ErrLoss) || errors.Is(err, notary.ErrKey)
	if err != nil && (lost || key != "") {
		s.Logger.ErrorContext(ctx, "replacing the log's key", "request", RequestID(ctx), "err", err)
	}
	switch {
	case lost:
		return nil, problem(client.AuditUnavailable, "the log, or its key, is not what was signed: `tracon audit verify` on the server's machine tells more")
	case err != nil && key != "":
		return nil, problem(client.AuditUnavailable, "the key was replaced, and the log could not be signed with it in every place: readiness tells more")
	case err != nil:
		return nil, err
	}
	return &answer[client.LogKey]{client.LogKey{Key: string(key)}}, nil
}
