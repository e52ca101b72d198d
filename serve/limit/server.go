package limit

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of what comes over one connection.
const (
	HeaderTime  = 5 * time.Second  // in which a request's header, or a handshake, must have come
	IdleTime    = 60 * time.Second // that a connection may wait for its next request
	WriteTime   = 30 * time.Second // that a client may take nothing of an answer
	HeaderBytes = 16 << 10         // of a request's header
	Streams     = 100              // requests at once over one HTTP/2 connection
)

// Server returns a server of h that waits for nobody longer than the constants of
// this package say. A body's time is for h to bound. Logger is told at level Debug
// what a stranger did wrong, so that garbage fills no log; nil: nobody is.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler: Patient(h, WriteTime), ReadHeaderTimeout: HeaderTime, IdleTimeout: IdleTime,
		// The library adds 4 KiB of its own.
		MaxHeaderBytes: HeaderBytes - 4096,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: Streams, MaxReadFrameSize: 64 << 10, WriteByteTimeout: WriteTime, SendPingTimeout: IdleTime},
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return context.Background() },
	}
}

// Patient gives each part of an answer of next that time to be taken, so that a
// client that does not read is left. An answer as a whole may take as long as its
// parts come.
func Patient(next http.Handler, each time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{ResponseWriter: w, control: http.NewResponseController(w), each: each}
		p.touch()
		defer p.touch() // what is buffered is written behind the handler
		next.ServeHTTP(p, r)
	})
}

type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	each    time.Duration
}

// touch sets the deadline anew. Where the connection has none, the server's holds.
func (p *patient) touch() { _ = p.control.SetWriteDeadline(time.Now().Add(p.each)) }

func (p *patient) WriteHeader(status int) {
	p.touch()
	p.ResponseWriter.WriteHeader(status)
}

func (p *patient) Write(b []byte) (int, error) {
	p.touch()
	return p.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController calls.
func (p *patient) FlushError() error {
	p.touch()
	return p.control.Flush()
}

// Unwrap lets http.ResponseController through.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
