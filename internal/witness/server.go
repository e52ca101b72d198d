package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// A Server is a witness. It is safe for concurrent use; several processes on one
// folder see what each other saw.
type Server struct {
	folder string
	key    SigningKey
	logs   []audit.PublicKey
	logger *slog.Logger
}

// NewServer returns the witness that keeps its key and what it saw in folder. It
// makes them where there are none, under that name. It cosigns the logs of those
// keys, and no other.
func NewServer(folder, name string, logs []audit.PublicKey, logger *slog.Logger) (*Server, error) {
	if err := ownfile.MakeFolder(folder); err != nil {
		return nil, err
	}
	key, err := openKey(folder, name)
	if err != nil {
		return nil, err
	}
	return &Server{folder, key, logs, logger}, nil
}

func openKey(folder, name string) (SigningKey, error) {
	lock, err := ownfile.WaitLock(context.Background(), filepath.Join(folder, "lock"))
	if err != nil {
		return SigningKey{}, err
	}
	defer lock.Close()
	file := filepath.Join(folder, "witness.key")
	text, err := ownfile.ReadPrivate(file, 4096)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err := NewSigningKey(name)
		if err != nil {
			return SigningKey{}, err
		}
		return key, ownfile.Write(file, []byte(key.Secret()+"\n"))
	case err != nil:
		return SigningKey{}, err
	}
	key, err := ParseSigningKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return SigningKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// Key returns the witness's public key.
func (s *Server) Key() PublicKey { return s.key.Public() }

// seen is what the witness saw of one log last.
type seen struct {
	Origin string     `json:"origin"`
	Size   uint64     `json:"size"`
	Root   audit.Hash `json:"root"`
	Note   string     `json:"note"` // the checkpoint with the witness's signature alone, for who must believe it
}

// ServeHTTP answers POST /add-checkpoint, and GET /last/NAME, where NAME is the
// SHA-256 of a log's origin.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, lastPrefix); ok && r.Method == http.MethodGet {
		s.show(w, r, name)
		return
	}
	if r.URL.Path != path {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST it", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "it cannot be read, or is too long", http.StatusBadRequest)
		return
	}
	status, contentType, answer := s.add(r.Context(), body)
	reply(w, status, contentType, answer)
}

func reply(w http.ResponseWriter, status int, contentType, answer string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// show answers with the last checkpoint of the log of that name.
func (s *Server) show(w http.ResponseWriter, r *http.Request, of string) {
	for _, k := range s.logs {
		if name(k.Origin()) != of {
			continue
		}
		last, err := s.last(k.Origin()) // what is there was put there whole
		switch {
		case err != nil:
			s.logger.Error("the witness's folder", "err", err)
			reply(w, http.StatusInternalServerError, plain, "the witness failed\n")
		case last.Note != "":
			reply(w, http.StatusOK, plain, last.Note)
		default:
			http.NotFound(w, r)
		}
		return
	}
	http.NotFound(w, r)
}

const plain = "text/plain; charset=utf-8"

// add decides on one request, in the order of C2SP's tlog-witness.
func (s *Server) add(ctx context.Context, body []byte) (status int, contentType, answer string) {
	req, err := decode(body)
	if err != nil {
		return http.StatusBadRequest, plain, err.Error() + "\n"
	}
	c, err := audit.ParseCheckpoint(req.note)
	if err != nil {
		return http.StatusBadRequest, plain, err.Error() + "\n"
	}
	known := false
	for _, k := range s.logs {
		known = known || k.Origin() == c.Origin
	}
	if !known {
		return http.StatusNotFound, plain, "this witness does not know that log\n"
	}
	if c, err = audit.OpenCheckpoint(req.note, s.logs...); err != nil {
		return http.StatusForbidden, plain, "no signature of that log's key holds\n"
	}
	if req.old > c.Tree.Size {
		return http.StatusBadRequest, plain, "old is more than the checkpoint\n"
	}
	lock, err := ownfile.WaitLock(ctx, filepath.Join(s.folder, "lock"))
	if err != nil {
		s.logger.Error("the witness's folder", "err", err)
		return http.StatusInternalServerError, plain, "the witness failed\n"
	}
	defer lock.Close()
	return s.swap(req, c)
}

// swap goes from what was seen to c, under the lock: compare, persist, sign.
func (s *Server) swap(req request, c audit.Checkpoint) (status int, contentType, answer string) {
	fail := func(err error) (int, string, string) {
		s.logger.Error("the witness's folder", "err", err)
		return http.StatusInternalServerError, plain, "the witness failed\n"
	}
	last, err := s.last(c.Origin)
	if err != nil {
		return fail(err)
	}
	conflict := func() (int, string, string) {
		return http.StatusConflict, sizeType, fmt.Sprintf("%d\n", last.Size)
	}
	before := audit.Tree{Size: last.Size, Root: last.Root}
	switch {
	case req.old != last.Size:
		return conflict()
	case req.old == c.Tree.Size && c.Tree != before:
		s.logger.Error("a log shows two trees of one size", "origin", c.Origin, "size", c.Tree.Size)
		return conflict()
	}
	if err := audit.CheckConsistency(req.proof, before, c.Tree); err != nil {
		s.logger.Error("a log does not go on from what was seen", "origin", c.Origin, "seen", last.Size, "size", c.Tree.Size)
		return http.StatusUnprocessableEntity, plain, "the proof does not hold\n"
	}
	text, _ := split(c.Note)
	line := s.key.cosign(text, time.Now())
	if c.Tree != before {
		if err := s.keep(seen{c.Origin, c.Tree.Size, c.Tree.Root, text + "\n" + line}); err != nil {
			return fail(err)
		}
	}
	return http.StatusOK, plain, line
}

func (s *Server) file(origin string) string {
	return filepath.Join(s.folder, "log-"+name(origin)+".json")
}

// last returns what was seen of the log; of a new one, the empty tree.
func (s *Server) last(origin string) (seen, error) {
	text, err := ownfile.Read(s.file(origin), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return seen{Origin: origin, Root: (audit.Frontier{}).Root()}, nil
	}
	if err != nil {
		return seen{}, err
	}
	var last seen
	if err := strictjson.Unmarshal(text, &last); err != nil || last.Origin != origin || last.Root.IsZero() {
		return seen{}, fmt.Errorf("%s is damaged: %w", s.file(origin), errors.Join(err))
	}
	return last, nil
}

func (s *Server) keep(now seen) error {
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return ownfile.Write(s.file(now.Origin), append(text, '\n'))
}

// Serve answers on l until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		ended <- h.Shutdown(down)
	})
	err := h.Serve(l)
	if stop() {
		return err // it ended by itself
	}
	return <-ended
}

// Listen listens at address, which must be of this machine alone: what comes from
// elsewhere needs TLS, which a proxy has.
func Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%q is not an address of this machine alone; listen at 127.0.0.1 or [::1], and put a proxy with TLS before it", host)
	}
	return net.Listen("tcp", address)
}
