package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// read reads one value of at most max bytes from r, and nothing behind it.
func read(r io.Reader, max int64, v any) error {
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if err != nil {
		return fmt.Errorf("wire: reading: %w", err)
	}
	if int64(len(b)) > max {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)
	}
	// Depth: an object, "tracon", a list, its objects; more is in unknown members.
	if err := strictjson.UnmarshalFolded(b, v, strictjson.Limits{Depth: 16}); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// encode writes v without the escapes that HTML asks for: a stream that is at its
// limit would grow sixfold.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("wire: writing: %w", err)
	}
	return b.Bytes(), nil
}

// orMost returns max, or most where max says nothing.
func orMost(max, most int64) int64 {
	if max <= 0 {
		return most
	}
	return max
}
