package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/toolset"
)

// What a [Config] means by zero.
const (
	DefaultMaxBody     = 8 << 20          // bytes of a request: input files travel in it
	DefaultIdleSession = 30 * time.Minute // before a session of an older protocol is forgotten
	maxServers         = 1000             // principals whose tools are held ready
	bodyTime           = 30 * time.Second // in which a request must have come
	lookEvery          = 5 * time.Second  // at what clients that wait to hear of changes are shown
	newestStateless    = "2026-07-28"     // from this version on there are no sessions
)

// MetadataPath is where clients find out how to get a credential (RFC 9728), below which
// the endpoint's own path stands.
const MetadataPath = "/.well-known/oauth-protected-resource"

// A Config says what the endpoint works on.
type Config struct {
	Tools *toolset.Toolset // required

	// Authenticate says who sent a request. Known is false where there is no credential,
	// or none that holds; an error means that it could not be found out. Required.
	Authenticate func(r *http.Request) (p access.Principal, known bool, err error)

	// Authorizer is asked after the roles have said yes, and can only narrow. Nil: the
	// roles decide alone.
	Authorizer access.Authorizer

	// Enter takes a request of p, as the management API's limiter does; leave is called
	// when it is answered. Leave is nil where it is too much; it may come again after
	// that time. Nil: nobody is bounded.
	Enter func(ctx context.Context, p access.Principal) (leave func(), after time.Duration)

	// Refuse writes the answer to a request that is refused before the protocol is spoken:
	// the status is one of 401, 403, 408, 413, 429 and 503, and what else the header needs is
	// in it. Nil: a line of plain text.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, detail string)

	// Resource is the endpoint's own address as clients know it, such as
	// "https://tracon.example/mcp", and Issuers are who gives out credentials for it. Empty:
	// clients are not told, and need a key.
	Resource string
	Issuers  []string

	MaxBody     int64         // bytes; zero: 8 MiB
	IdleSession time.Duration // zero: 30 min
	Version     string        // of the program
	Logger      *slog.Logger  // nil: slog.Default()
}

// A Handler is the endpoint over HTTP. It is safe for concurrent use.
type Handler struct {
	c         Config
	cross     *http.CrossOriginProtection
	auth      http.Handler
	stateless http.Handler
	sessions  http.Handler
	stop      context.CancelFunc
	done      sync.WaitGroup

	mu      sync.Mutex
	servers map[key]*held
	retired bool
}

// key is what two principals must have in common to share a server.
type key struct {
	tenant, actor, id string
	run               bool
}

type held struct {
	*server
	used   time.Time
	inside int // requests that wait for an answer
}

type serverKey struct{}

// New returns the endpoint. Close it when its last request is answered.
func New(c Config) (*Handler, error) {
	if c.Tools == nil || c.Authenticate == nil {
		return nil, errors.New("mcpserver: Config needs Tools and Authenticate")
	}
	if c.MaxBody < 0 || c.IdleSession < 0 {
		return nil, errors.New("mcpserver: a limit of Config is negative; zero means the default")
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Refuse == nil {
		c.Refuse = func(w http.ResponseWriter, _ *http.Request, status int, detail string) { http.Error(w, detail, status) }
	}
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	h := &Handler{c: c, cross: http.NewCrossOriginProtection(), servers: map[key]*held{}}
	options := mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: c.MaxBody, SessionTimeout: cmp.Or(c.IdleSession, DefaultIdleSession),
		PropagateRequestCancellation: true,
	}
	from := func(r *http.Request) *mcp.Server { return r.Context().Value(serverKey{}).(*server).Server }
	h.sessions = mcp.NewStreamableHTTPHandler(from, &options)
	options.Stateless = true
	h.stateless = mcp.NewStreamableHTTPHandler(from, &options)
	h.auth = auth.RequireBearerToken(verified, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(http.HandlerFunc(h.serve))

	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.done.Go(func() { h.look(ctx) })
	return h, nil
}

// challenge is what a client without a credential that holds is told.
func (c Config) challenge() string {
	if c.Resource != "" {
		return fmt.Sprintf("Bearer resource_metadata=%q", c.metadataURL())
	}
	return `Bearer realm="tracon"`
}

// Retire ends the sessions of clients that wait for nothing, at once, and the others when
// they have their answers. Clients begin new ones elsewhere.
func (h *Handler) Retire() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = true
	for _, s := range h.servers {
		if s.inside == 0 {
			h.done.Go(s.end) // it waits for the client's streams
		}
	}
}

// Close ends every session.
func (h *Handler) Close() error {
	h.stop()
	h.done.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, s := range h.servers {
		s.end()
		delete(h.servers, k)
	}
	return nil
}

func (s *server) end() {
	for session := range s.Sessions() {
		_ = session.Close()
	}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := h.cross.Check(r); err != nil || len(r.Header.Values("Authorization")) > 1 {
		h.c.Refuse(w, r, http.StatusForbidden, "a browser sent this for another site, or it has two credentials")
		return
	}
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	p, known, err := access.Principal{}, false, error(nil)
	if strings.EqualFold(scheme, "Bearer") {
		p, known, err = h.c.Authenticate(r)
	}
	switch {
	case err != nil:
		h.c.Logger.Error("a credential could not be looked up", "err", err)
		h.c.Refuse(w, r, http.StatusServiceUnavailable, "the credential cannot be looked up now")
	case !known:
		w.Header().Set("WWW-Authenticate", h.c.challenge())
		h.c.Refuse(w, r, http.StatusUnauthorized, "a credential that holds is needed: Authorization: Bearer …")
	default:
		h.auth.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	}
}

// principal carries who asks to the answer, and principalKey to the library, which
// hands it on.
const principal = "principal"

type principalKey struct{}

func verified(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	p, ok := ctx.Value(principalKey{}).(access.Principal)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	// A session belongs to who began it: the library compares the id of each request.
	return &auth.TokenInfo{UserID: p.Tenant + "\x00" + p.Actor + "\x00" + p.Key, Extra: map[string]any{principal: p}}, nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	p := auth.TokenInfoFromContext(r.Context()).Extra[principal].(access.Principal)
	if access.Check(r.Context(), h.c.Authorizer, p, access.ReadSkills) != nil {
		h.c.Refuse(w, r, http.StatusForbidden, "it takes "+string(access.ReadSkills))
		return
	}
	if h.c.Enter != nil {
		leave, after := h.c.Enter(r.Context(), p)
		if leave == nil {
			h.tooMany(w, r, after)
			return
		}
		defer leave()
	}
	if r, ok := h.body(w, r); ok {
		h.answer(w, r, p)
	}
}

// body reads the body, in its time: a client that sends it slowly holds nothing.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where there is a connection to have one
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.c.MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		h.c.Refuse(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has %d bytes at most", h.c.MaxBody))
		return nil, false
	}
	if err != nil {
		h.c.Refuse(w, r, http.StatusRequestTimeout, "the request did not come in time, or not whole")
		return nil, false
	}
	_ = control.SetReadDeadline(time.Time{}) // a script may take its time
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(b))
	return r, true
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, p access.Principal) {
	s := h.enter(p, access.Check(r.Context(), h.c.Authorizer, p, access.WriteRuns) == nil, r.Method)
	defer h.leave(s, r.Method)
	s.refresh(r.Context())
	r = r.WithContext(context.WithValue(r.Context(), serverKey{}, s.server))
	if r.Header.Get("Mcp-Protocol-Version") >= newestStateless {
		h.stateless.ServeHTTP(w, r)
		return
	}
	h.sessions.ServeHTTP(w, r)
}

// enter returns what p is shown. Of those that nobody uses, the one that was used
// longest ago makes room.
func (h *Handler) enter(p access.Principal, run bool, method string) *held {
	k := key{p.Tenant, p.Actor, p.Key, run}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.servers[k]
	if s == nil {
		h.makeRoom()
		s = &held{server: newServer(p, run, h.c.Tools, h.c.Version, h.c.Logger)}
		h.servers[k] = s
	}
	s.used = time.Now()
	if method == http.MethodPost {
		s.inside++
	}
	return s
}

func (h *Handler) leave(s *held, method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method != http.MethodPost {
		return
	}
	if s.inside--; s.inside == 0 && h.retired {
		h.done.Go(s.end)
	}
}

func (h *Handler) makeRoom() {
	if len(h.servers) < maxServers {
		return
	}
	var oldest key
	var at time.Time
	for k, s := range h.servers {
		if s.inside == 0 && (at.IsZero() || s.used.Before(at)) {
			oldest, at = k, s.used
		}
	}
	if s := h.servers[oldest]; s != nil { // else every one waits for an answer, and the limits bound them
		h.done.Go(s.end)
		delete(h.servers, oldest)
	}
}

// look refreshes what connected clients are shown, so that they hear of a grant that was
// made or revoked.
func (h *Handler) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range h.connected() {
			s.refresh(ctx)
		}
	}
}

func (h *Handler) connected() (list []*server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		for range s.Sessions() {
			list = append(list, s.server)
			break
		}
	}
	return list
}

// metadataURL is where the metadata of the endpoint stands, by RFC 9728: the path goes
// behind the well-known one.
func (c Config) metadataURL() string {
	u, err := url.Parse(c.Resource)
	if err != nil {
		return ""
	}
	u.Path = MetadataPath + u.Path
	return u.String()
}

// Metadata answers for the metadata of the endpoint: which resource it is, and who gives
// out credentials. Anybody may read it. It is to be mounted at [MetadataPath] followed by
// the endpoint's path. Where the configuration names no resource there is none.
func (h *Handler) Metadata() http.Handler {
	if h.c.Resource == "" {
		return http.NotFoundHandler()
	}
	body, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{h.c.Resource, h.c.Issuers, []string{"header"}})
	if err != nil {
		panic(err) // texts
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*") // it is public
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
}

func (h *Handler) tooMany(w http.ResponseWriter, r *http.Request, after time.Duration) {
	seconds := int((after + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(max(1, seconds)))
	h.c.Refuse(w, r, http.StatusTooManyRequests, "too many requests; try again later")
}
