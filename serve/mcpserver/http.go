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
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/toolset"
)

// What a [Config] means by zero.
const (
	DefaultMaxBody     = 8 << 20          // bytes of a request: input files travel in it
	DefaultIdleSession = 30 * time.Minute // before a session of an older protocol is forgotten
	maxServers         = 1000             // principals whose tools are held ready
	bodyTime           = 30 * time.Second // in which a request must have come
	mostSessions       = 100              // of one principal, in protocols that have them
	mostSessionsInAll  = 10_000           // of all
	lookAgain          = 15 * time.Second // at the credential of who listens or waits
	mostUnknown        = 20               // looks one after another that found nothing out, before that is a no
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
	// or none that holds; an error means that it could not be found out, an
	// *access.TooManyError that it was not looked at. Required.
	Authenticate func(r *http.Request) (p access.Principal, known bool, err error)

	// Again looks again at the credential of a request that Authenticate let in, while its
	// call waits or runs or its stream lasts. It must look, however many did not hold. Nil:
	// Authenticate.
	Again func(r *http.Request) (p access.Principal, known bool, err error)

	// Authorizer is asked after the roles have said yes, and can only narrow. Nil: the
	// roles decide alone.
	Authorizer access.Authorizer

	// Enter takes a request of p, as the management API's limiter does; run says that it
	// starts a run. Leave is called when it is answered. Leave is nil where it is too
	// much; it may come again after that time. Nil: nobody is bounded.
	Enter func(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration)

	// Runs is whose room for calls under way the bodies of requests take while they are
	// answered, and answers that are large. Nil: they are bounded one by one alone.
	Runs *runs.Runs

	// Refuse writes the answer to a request that is refused before the protocol is spoken:
	// the status is one of 400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500 and 503, and
	// what else the header needs is in it. Nil: a line of plain text.
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
	if c.Again == nil {
		c.Again = c.Authenticate
	}
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
	servers := h.servers
	h.servers = map[key]*held{}
	h.mu.Unlock()
	for _, s := range servers {
		s.end()
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
	if many, ok := errors.AsType[*access.TooManyError](err); ok {
		h.tooMany(w, r, many.After)
		return
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

// principalKey carries who asks to the library.
type principalKey struct{}

func verified(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	p, ok := ctx.Value(principalKey{}).(access.Principal)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	// A session belongs to who began it: the library compares the id of each request.
	return &auth.TokenInfo{UserID: p.Tenant + "\x00" + p.Actor + "\x00" + p.Key, Extra: map[string]any{asks: &asking{principal: p}}}, nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	a := auth.TokenInfoFromContext(r.Context()).Extra[asks].(*asking)
	a.runs = h.c.Runs
	p := a.principal
	leave, ok := h.limit(w, r, p, false)
	if !ok {
		return
	}
	defer leave()
	if access.Check(r.Context(), h.c.Authorizer, p, access.ReadSkills) != nil {
		h.c.Refuse(w, r, http.StatusForbidden, "it takes "+string(access.ReadSkills))
		return
	}
	defer a.answered()
	r, m, ok := h.body(w, r, a)
	if !ok {
		return
	}
	if m.runs() {
		leave, ok := h.limit(w, r, p, true)
		if !ok {
			return
		}
		defer leave()
	}
	h.answer(w, r, a, m)
}

// limit asks Enter, and says when to come again.
func (h *Handler) limit(w http.ResponseWriter, r *http.Request, p access.Principal, run bool) (leave func(), ok bool) {
	if h.c.Enter == nil {
		return func() {}, true
	}
	leave, after := h.c.Enter(r.Context(), p, run)
	if leave == nil {
		h.tooMany(w, r, after)
	}
	return leave, leave != nil
}

// A sent is what a request says of itself. The zero sent is a request without a body.
type sent struct {
	Method string `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

func (m sent) runs() bool { return m.Method == "tools/call" && m.Params.Name == toolset.RunSkillScript }

// listens reports whether the answer has no end by itself.
func (m sent) listens(r *http.Request) bool {
	return r.Method == http.MethodGet || m.Method == listen
}

// body reads the body, in its time: a client that sends it slowly holds nothing. It is
// one object, read strictly: whoever stands between must not read another tool in it
// than the one that runs. Batches, which one version of the protocol had, are refused:
// one request is one call to the limits.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, a *asking) (_ *http.Request, m sent, ok bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, m, true
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where there is a connection to have one
	b, err := a.read(w, r, h.c.MaxBody)
	if busy, ok := errors.AsType[*slot.BusyError](err); ok {
		h.tooMany(w, r, busy.RetryAfter)
		return nil, m, false
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		h.c.Refuse(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has %d bytes at most", h.c.MaxBody))
		return nil, m, false
	}
	if err != nil {
		h.c.Refuse(w, r, http.StatusRequestTimeout, "the request did not come in time, or not whole")
		return nil, m, false
	}
	_ = control.SetReadDeadline(time.Time{}) // a script may take its time
	if len(b) > 0 {
		b, err = strictjson.Canonical(b, strictjson.Limits{})
		if err != nil || b[0] != '{' {
			h.c.Refuse(w, r, http.StatusBadRequest, "a request is one JSON object, with no name twice in it")
			return nil, m, false
		}
		_ = json.Unmarshal(b, &m) // what has other types is for the library to refuse
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	return r, m, true
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, a *asking, m sent) {
	p, waits := a.principal, r.Method == http.MethodPost && !m.listens(r)
	s := h.enter(p, h.mayRun(r.Context(), p), waits)
	defer h.leave(s, waits)
	ctx, stop := context.WithCancel(context.WithValue(r.Context(), serverKey{}, s.server))
	defer stop()
	switch {
	case m.runs():
		a.still, a.gone = h.stillMay(r, p, access.WriteRuns), make(chan struct{})
		go stillThere(ctx, a.still, func() { close(a.gone); stop() })
	case m.listens(r):
		go stillThere(ctx, h.stillMay(r, p, access.ReadSkills), stop)
	}
	s.refresh(ctx)
	r = r.WithContext(ctx)
	answer := &plain{ResponseWriter: w}
	defer h.refuse(answer, r)
	if r.Header.Get("Mcp-Protocol-Version") >= newestStateless {
		h.stateless.ServeHTTP(answer, r)
		return
	}
	if m.Method == "initialize" && !h.room(s) {
		h.tooMany(w, r, time.Minute)
		return
	}
	h.sessions.ServeHTTP(answer, r)
	if m.Method == "initialize" {
		h.began(s, w.Header().Get("Mcp-Session-Id"))
	}
}

func (h *Handler) mayRun(ctx context.Context, p access.Principal) bool {
	return access.Check(ctx, h.c.Authorizer, p, access.WriteRuns) == nil
}

// stillThere looks again at the credential of who listens or waits for a script, and ends
// it when that holds no longer, or may not do this any more: a call in the queue never
// starts, one that runs is cancelled (T11). A store that is away for a while ends nothing;
// after mostUnknown looks, 5 minutes, nobody is believed any more. A call whose client has
// gone is a run like another, and goes on.
func stillThere(ctx context.Context, still func(context.Context) error, end func()) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for unknown := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := still(ctx)
		if unknown++; err == nil {
			unknown = 0
		}
		if errors.Is(err, gate.ErrDenied) || unknown == mostUnknown {
			end()
			return
		}
	}
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
