package cli

import (
	"bytes"
	"testing"

	"github.com/tracon-go/tracon/audit"
)

// A line of an export that is taken is written again as it was: no second way to say
// the same, and no word that its leaf does not have.
func FuzzReadExported(f *testing.F) {
	f.Add([]byte(`{"index":0,"hash":"0000000000000000000000000000000000000000000000000000000000000000","seq":1,"id":"","time":"2026-11-29T12:00:00Z","tenant":"acme","actor":"","kind":"host","subject":"","count":1,"facts":{},"leaf":""}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"leaf":"dHJhY29uL2xlYWYvMQ=="}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		leaf, err := readExported(line)
		if err != nil {
			return
		}
		if _, _, err := audit.Decode(leaf.Bytes); err != nil {
			return // VerifyHistory tells it
		}
		if again, err := encodeExported(leaf); err != nil || !bytes.Equal(again, bytes.TrimSpace(line)) {
			t.Errorf("taken: %q; written: %q, %v", line, again, err)
		}
	})
}
