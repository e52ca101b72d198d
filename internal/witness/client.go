package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/audit"
)

// A Client asks one witness to cosign. It is safe for concurrent use.
type Client struct {
	at   string
	key  PublicKey
	http *http.Client
	size atomic.Uint64 // that the witness saw last, as far as is known
}

// How long a witness is waited for: one that cannot be reached is the usual case, and
// each receipt would wait for it.
const (
	DialTime    = 5 * time.Second  // until there is a connection
	RequestTime = 30 * time.Second // for one request in all
)

// Fresh is how far the time in a cosignature may be from this host's clock. One
// that is older may have been kept by somebody on the way, and says nothing of now.
const Fresh = time.Hour

// Parse reads what the configuration says of a witness: its address and its key,
// with a blank between. What is on another machine is asked by https alone: whoever is
// on the way could answer else that there was a loss.
func Parse(text string) (*Client, error) {
	address, key, _ := strings.Cut(text, " ")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a witness; write one such as https://witness.example.org, a blank, and its key", address)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the witness at %q is on another machine: write https:// and put a proxy with TLS before it; http:// is for 127.0.0.1 and [::1] alone", address)
	}
	k, err := ParsePublicKey(strings.TrimSpace(key))
	if err != nil {
		return nil, err
	}
	return &Client{at: strings.TrimSuffix(address, "/"), key: k, http: &http.Client{
		Timeout:       RequestTime,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: DialTime}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name returns the witness's name.
func (c *Client) Name() string { return c.key.Name() }

// Cosigned reports whether the witness has cosigned note.
func (c *Client) Cosigned(note []byte) bool {
	_, ok := c.key.Cosigned(note)
	return ok
}

// An Objection is the error of Cosign where the witness says that it has seen more
// entries, or others. That is not signed; what it [Objection.Shows] is.
type Objection struct {
	says string
	note []byte
}

func (o *Objection) Error() string { return o.says }

// Shows returns the last checkpoint that the witness cosigned, with its signature;
// nil where it does not show it, as C2SP's protocol does not ask for it.
func (o *Objection) Shows() []byte { return o.note }

// Cosign returns the line of the witness's signature of cp, made now.
//
// # Errors
//
// An *[Objection] where the witness has seen more entries, or others.
func (c *Client) Cosign(ctx context.Context, cp audit.Checkpoint, prove func(before uint64) ([]audit.Hash, error)) ([]byte, error) {
	objects := func(format string, args ...any) ([]byte, error) {
		return nil, &Objection{fmt.Sprintf("the witness %s says that it has seen ", c.Name()) + fmt.Sprintf(format, args...), c.last(ctx, cp.Origin)}
	}
	old := min(c.size.Load(), cp.Tree.Size)
	for range 3 { // another process may have come between
		req := request{old: old, note: cp.Note}
		if old > 0 && old < cp.Tree.Size {
			var err error
			if req.proof, err = prove(old); err != nil {
				return nil, err
			}
		}
		status, answer, err := c.send(ctx, http.MethodPost, path, req.encode())
		if err != nil {
			return nil, err
		}
		switch status {
		case http.StatusOK:
			c.size.Store(cp.Tree.Size)
			return c.lines(cp, answer)
		case http.StatusConflict:
			n, ok := plainNumber(strings.TrimSuffix(answer, "\n"))
			switch {
			case !ok:
				return nil, errors.New("its answer is no size")
			case n > cp.Tree.Size:
				return objects("%d entries, and it was shown %d", n, cp.Tree.Size)
			case n == old && old == cp.Tree.Size:
				return objects("%d other entries", n)
			}
			old = n
		case http.StatusUnprocessableEntity:
			return objects("other entries among the first %d", old)
		default:
			return nil, fmt.Errorf("it answered %d: %q", status, firstLine(answer))
		}
	}
	return nil, errors.New("it tells of another size each time")
}

// last returns the last checkpoint of the log that the witness shows, nil for none.
func (c *Client) last(ctx context.Context, origin string) []byte {
	status, answer, err := c.send(ctx, http.MethodGet, lastPath(origin), nil)
	if err != nil || status != http.StatusOK || !c.Cosigned([]byte(answer)) {
		return nil
	}
	return []byte(answer)
}

func (c *Client) send(ctx context.Context, method, path string, body []byte) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.at+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != nil {
		r.Header.Set("Content-Type", plain)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, audit.MaxNote))
	return answer.StatusCode, string(text), err
}

// lines returns the one line of answer that is the witness's signature of cp.
func (c *Client) lines(cp audit.Checkpoint, answer string) ([]byte, error) {
	text, _ := split(cp.Note)
	for line := range strings.Lines(answer) {
		if at, err := c.key.verify(text, strings.TrimSuffix(line, "\n")); err == nil {
			if off := time.Since(at).Abs(); off > Fresh {
				return nil, fmt.Errorf("its signature is of %s: an old one, or its clock and this one are %s apart", at.UTC().Format(time.RFC3339), off.Truncate(time.Second))
			}
			return []byte(strings.TrimSuffix(line, "\n") + "\n"), nil
		}
	}
	return nil, errors.New("its answer holds no signature of its key that holds")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line[:min(len(line), 200)]
}
