package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/limit"
)

// doors are what a server listens at.
type doors struct {
	started Started
	cert    atomic.Pointer[tls.Certificate]
	all     []door
	wg      sync.WaitGroup
}

type door struct {
	listener net.Listener
	server   *http.Server
	tls      bool
}

// open listens at everything that c names, and answers nobody yet. What was opened
// is closed by close.
func (d *doors) open(s *server, c *config.Config) error {
	if address := c.Serve.Listen; address != "" {
		l, err := listen("listen", address)
		if err != nil {
			return err
		}
		l = limit.Listener(l, c.Serve.Connections, c.Serve.ConnectionsPerPeer)
		secure, handler, scheme := c.Serve.TLSCert != "", http.Handler(http.HandlerFunc(s.answer)), "http"
		if secure {
			scheme = "https"
		} else if local(address) {
			handler = fromHere(handler)
		}
		srv := limit.Server(s.handler(handler), s.log)
		srv.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return d.cert.Load(), nil }}
		d.all = append(d.all, door{l, srv, secure})
		d.started.Address = scheme + "://" + l.Addr().String()
	}
	if address := c.Serve.MetricsListen; address != "" {
		l, err := listen("metrics_listen", address)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		metrics := s.tel.Handler()
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			httpapi.Note(r.Context(), "metrics", access.Principal{})
			metrics.ServeHTTP(w, r)
		})
		d.all = append(d.all, door{limit.Listener(l, 64, 64), limit.Server(httpapi.Door(s.log, mux), s.log), false})
		d.started.Metrics = "http://" + l.Addr().String() + "/metrics"
	}
	if !hasSocket {
		return nil
	}
	path := filepath.Join(c.Data, SocketFile)
	l, err := listenSocket(path)
	if err != nil {
		return fmt.Errorf("the socket in the data folder: %w", err)
	}
	srv := limit.Server(s.handler(http.HandlerFunc(s.answer)), s.log)
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		uid := -1
		if u, ok := c.(*net.UnixConn); ok {
			if found, err := peerUID(u); err == nil {
				uid = found
			}
		}
		return withPeer(ctx, uid)
	}
	d.all = append(d.all, door{l, srv, false})
	d.started.Socket = path
	return nil
}

// listen listens at the address that the setting names.
func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w; name another address in %s, or stop what listens there", address, err, setting)
	}
	return l, nil
}

// listenSocket makes the socket, in place of one that a dead process left: who calls
// has the folder for itself.
func listenSocket(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there, and is no socket; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// prepare reads the certificate that c names, and returns what has it used.
func (d *doors) prepare(c *config.Config) (func(), error) {
	if c.Serve.TLSCert == "" {
		return func() {}, nil
	}
	cert, err := loadCertificate(c.Serve)
	if err != nil {
		return nil, err
	}
	return func() { d.cert.Store(cert) }, nil
}

// serve answers whoever comes.
func (d *doors) serve() {
	for _, one := range d.all {
		d.wg.Go(func() {
			if one.tls {
				_ = one.server.ServeTLS(one.listener, "", "") // ends when it is closed
			} else {
				_ = one.server.Serve(one.listener)
			}
		})
	}
}

// close lets nobody in any more. What it returns waits for those who are inside, for a
// while, and then sends them away.
func (d *doors) close() (closed func()) {
	patience, impatient := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, one := range d.all {
		_ = one.listener.Close() // also where nobody was served yet
		wg.Go(func() {
			if one.server.Shutdown(patience) != nil {
				_ = one.server.Close()
			}
		})
	}
	return func() {
		t := time.AfterFunc(lastWords, impatient)
		wg.Wait()
		d.wg.Wait()
		t.Stop()
		impatient()
	}
}
