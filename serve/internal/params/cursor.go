package params

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A cursor says where a list goes on. Its text is for nobody to read: a version, a
// digest of the list that it belongs to (the tenant, the operation, the filter), and a
// position. The digest is no secret and needs none: a position chooses among the
// tenant's own rows alone, whoever made it. It is there so that a cursor of another
// tenant's list, or of another filter, is refused rather than misunderstood.

const (
	cursorVersion = "1"
	cursorDigest  = 12 // bytes of the list's digest
	maxCursor     = 1024
)

// ListOf names a list: of which tenant, which operation, and which filter.
func ListOf(tenant, operation string, filter ...string) string {
	h := sha256.New()
	for _, w := range append([]string{"tracon/cursor/1", tenant, operation}, filter...) {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	return string(h.Sum(nil)[:cursorDigest])
}

// NewCursor returns the cursor of the list behind position, empty for an empty one.
func NewCursor(list, position string) string {
	if position == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + list + position))
}

// ReadCursor returns the position, empty for the beginning.
func ReadCursor(list, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	bad := client.NewProblem(client.BadCursor, "the cursor is of another list, or none")
	if len(text) > maxCursor {
		return "", bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which the decoder reads over
		return "", bad
	}
	position, ok := strings.CutPrefix(string(b), cursorVersion+list)
	if !ok || position == "" {
		return "", bad
	}
	return position, nil
}

// Paging are the parameters of every list.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"next of the part before; none: the beginning"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"at most so many items"`
}
