package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// RequestTime is how long one request may take.
const RequestTime = 5 * time.Second

// Parse reads what the configuration says of a witness: its address and its key,
// with a blank between.
func Parse(text string) (*Client, error) {
	address, key, _ := strings.Cut(text, " ")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a witness; write one such as https://witness.example.org, a blank, and its key", address)
	}
	k, err := ParsePublicKey(strings.TrimSpace(key))
	if err != nil {
		return nil, err
	}
	return &Client{at: strings.TrimSuffix(address, "/") + path, key: k, http: &http.Client{
		Timeout:       RequestTime,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
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

// Cosign returns the line of the witness's signature of cp.
//
// # Errors
//
// audit.ErrRolledBack where the witness has seen more entries; audit.ErrAltered
// where it has seen others.
func (c *Client) Cosign(ctx context.Context, cp audit.Checkpoint, prove func(before uint64) ([]audit.Hash, error)) ([]byte, error) {
	old := min(c.size.Load(), cp.Tree.Size)
	for range 3 { // another process may have come between
		req := request{old: old, note: cp.Note}
		if old > 0 && old < cp.Tree.Size {
			var err error
			if req.proof, err = prove(old); err != nil {
				return nil, err
			}
		}
		status, answer, err := c.post(ctx, req)
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
				return nil, fmt.Errorf("%w: the witness %s has seen %d entries, and the log has %d", audit.ErrRolledBack, c.Name(), n, cp.Tree.Size)
			case n == old && old == cp.Tree.Size:
				return nil, fmt.Errorf("%w: the witness %s has seen %d other entries", audit.ErrAltered, c.Name(), n)
			}
			old = n
		case http.StatusUnprocessableEntity:
			return nil, fmt.Errorf("%w: the witness %s has seen other entries among the first %d", audit.ErrAltered, c.Name(), old)
		default:
			return nil, fmt.Errorf("it answered %d: %q", status, firstLine(answer))
		}
	}
	return nil, errors.New("it tells of another size each time")
}

func (c *Client) post(ctx context.Context, req request) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at, bytes.NewReader(req.encode()))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", plain)
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, audit.MaxNote))
	return answer.StatusCode, string(body), err
}

// lines returns the one line of answer that is the witness's signature of cp.
func (c *Client) lines(cp audit.Checkpoint, answer string) ([]byte, error) {
	text, _ := split(cp.Note)
	for line := range strings.Lines(answer) {
		if _, err := c.key.verify(text, strings.TrimSuffix(line, "\n")); err == nil {
			return []byte(strings.TrimSuffix(line, "\n") + "\n"), nil
		}
	}
	return nil, errors.New("its answer holds no signature of its key that holds")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line[:min(len(line), 200)]
}
