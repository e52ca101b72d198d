package limit

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
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
		Handler: lastInChunks(Patient(h, WriteTime)), ReadHeaderTimeout: HeaderTime, IdleTimeout: IdleTime,
		// "OPTIONS *" is h's to answer, with the bounds and the line in the log that all have.
		DisableGeneralOptionsHandler: true,
		// The library adds 4 KiB of its own.
		MaxHeaderBytes: HeaderBytes - 4096,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: Streams, MaxReadFrameSize: 64 << 10, WriteByteTimeout: WriteTime, SendPingTimeout: IdleTime},
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return context.Background() },
	}
}

// lastInChunks has a request of HTTP/1 whose body comes in chunks be the last of its
// connection. Where it named a length too, somebody between may have read another end of
// it, and what follows would be a request that nobody let through. The library takes that
// length away before anybody here could see it (go 1.26), so all are treated alike; and a
// client that says how much it sends loses nothing.
func lastInChunks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Patient gives each part of an answer of next that time to be taken, so that a
// client that does not read is left. An answer as a whole may take as long as its
// parts come. What next left of a request's body must come within half of that time
// from the answer on: the library reads a rest before it answers, and would wait for
// it without an end.
func Patient(next http.Handler, each time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{ResponseWriter: w, control: http.NewResponseController(w), each: each}
		if r.Body != nil && r.Body != http.NoBody {
			r = r.WithContext(r.Context()) // the library looks at its own request's body
			p.body = &unread{ReadCloser: r.Body}
			r.Body = p.body
		}
		p.touch()
		defer p.touch() // what is buffered is written behind the handler
		defer p.hurry()
		next.ServeHTTP(p, r)
	})
}

// part is how much of an answer has the time of one.
const part = 64 << 10

type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	each    time.Duration
	body    *unread // nil: the request has none
}

// touch sets the deadline anew. Where the connection has none, the server's holds.
func (p *patient) touch() { _ = p.control.SetWriteDeadline(time.Now().Add(p.each)) }

// hurry bounds how long a rest of the body is waited for. Where there is none nothing
// is bounded: the library listens on for the client's leaving.
func (p *patient) hurry() {
	if p.body != nil && !p.body.ended.Load() {
		_ = p.control.SetReadDeadline(time.Now().Add(p.each / 2)) // there is time left to answer
	}
}

func (p *patient) WriteHeader(status int) {
	p.hurry()
	p.touch()
	p.ResponseWriter.WriteHeader(status)
}

func (p *patient) Write(b []byte) (n int, err error) {
	for {
		p.hurry()
		p.touch()
		next := b[n:min(len(b), n+part)]
		wrote, err := p.ResponseWriter.Write(next)
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is what http.ResponseController calls.
func (p *patient) FlushError() error {
	p.hurry()
	p.touch()
	return p.control.Flush()
}

// Unwrap lets http.ResponseController through.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// unread is a body that notes that it was read to its end.
type unread struct {
	io.ReadCloser
	ended atomic.Bool
}

func (u *unread) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		u.ended.Store(true)
	}
	return n, err
}
