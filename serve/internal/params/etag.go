package params

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// ErrPrecondition: what is to be changed is no longer what If-Match says.
var ErrPrecondition = errors.New("serve: it was changed since")

// maxTags is the most bytes of an If-Match header.
const maxTags = 1024

// ETag returns the tag of what words say: of one kind of thing, as it is now. It is a
// digest, so that it tells nothing and can be compared alone.
func ETag(words ...string) string {
	h := sha256.New()
	h.Write([]byte("tracon/etag/1"))
	for _, w := range words {
		h.Write([]byte{0})
		h.Write([]byte(w))
	}
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// WantsMatch refuses a change without a usable If-Match.
func WantsMatch(h http.Header) error {
	given := h.Values("If-Match")
	if len(given) == 0 {
		return client.NewProblem(client.PreconditionRequired, "say with If-Match which state this changes: its ETag, or * for whatever it is")
	}
	if _, err := ParseTags(strings.Join(given, ",")); err != nil {
		return err
	}
	return nil
}

// A Match is what an If-Match header asks for.
type Match struct {
	any  bool
	tags []string
}

// ParseTags reads If-Match: a star, or strong tags. A weak tag never matches (RFC
// 9110), so it is refused in words rather than as a change that came first.
func ParseTags(header string) (Match, error) {
	if len(header) > maxTags {
		return Match{}, client.NewProblem(client.BadRequest, "If-Match is too long")
	}
	header = strings.Trim(header, " \t")
	if header == "*" {
		return Match{any: true}, nil
	}
	var m Match
	for header != "" {
		if header[0] != '"' {
			return Match{}, client.NewProblem(client.BadRequest, `If-Match is * or a list of ETags, such as "1f2e…"`)
		}
		end := strings.IndexByte(header[1:], '"')
		if end < 0 {
			return Match{}, client.NewProblem(client.BadRequest, "If-Match has an ETag without an end")
		}
		m.tags = append(m.tags, header[:end+2])
		header = strings.TrimLeft(header[end+2:], " \t")
		if header == "" {
			break
		}
		if header[0] != ',' {
			return Match{}, client.NewProblem(client.BadRequest, "If-Match has ETags without a comma between")
		}
		header = strings.TrimLeft(header[1:], " \t")
		if header == "" {
			return Match{}, client.NewProblem(client.BadRequest, "If-Match ends with a comma")
		}
	}
	if len(m.tags) == 0 {
		return Match{}, client.NewProblem(client.BadRequest, "If-Match is empty")
	}
	return m, nil
}

// Any reports whether every state matches.
func (m Match) Any() bool { return m.any }

// Check says whether the present state, whose tag is now, is what was asked for.
func (m Match) Check(now string) error {
	if m.any {
		return nil
	}
	for _, t := range m.tags {
		if t == now {
			return nil
		}
	}
	return ErrPrecondition
}

// IfMatch is the header of a change, for an operation's parameters.
type IfMatch struct {
	IfMatch string `header:"If-Match" required:"true" doc:"ETag of the state that this changes, or *"`
}

// Match returns what the header asks for.
func (i IfMatch) Match() (Match, error) { return ParseTags(i.IfMatch) }
