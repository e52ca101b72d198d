package observe

import (
	"net/http"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// HTTP measures what next answers, with a span for each request. Route names the
// route of a request that was answered, from a closed set: a request's path would
// be a series of its own. Whoever asks may send a trace of its own: it is linked, and
// decides nothing here.
func (o *Observer) HTTP(next http.Handler, route func(*http.Request) string) http.Handler {
	var carrier propagation.TraceContext
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		method := methodOf(r)
		theirs := trace.SpanContextFromContext(carrier.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		how := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(keyMethod.String(method))}
		if theirs.IsValid() {
			how = append(how, trace.WithLinks(trace.Link{SpanContext: theirs}))
		}
		ctx, span := o.tracer.Start(r.Context(), method, how...)
		defer span.End()
		o.active.Add(ctx, 1)
		defer o.active.Add(ctx, -1)

		seen := &answer{ResponseWriter: w}
		defer func() {
			// A handler that panicked has answered nothing, or a part.
			status := seen.status
			if status == 0 {
				status = http.StatusOK
			}
			name := route(r)
			span.SetName(method + " " + name)
			span.SetAttributes(keyRoute.String(name), keyStatus.Int(status))
			if status >= 500 {
				span.SetStatus(codes.Error, http.StatusText(status))
			}
			o.requests.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(keyMethod.String(method), keyRoute.String(name), keyStatus.Int(status)))
		}()
		next.ServeHTTP(seen, r.WithContext(ctx))
	})
}

// methodOf returns one of the methods that there are.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// answer remembers the status.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController], which flushes and sets deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
