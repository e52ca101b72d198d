package notary_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
)

// FuzzPlace: B7: whatever stands in a file of checkpoints, who reads it gets pieces of it in
// their order, or an error, and of one that was added to behind it the whole.
func FuzzPlace(f *testing.F) {
	h := newHouse(f)
	h.write(f, 3)
	c := h.sign(f)
	note := append(bytes.Clone(c.Note), '\n')
	for _, s := range [][]byte{nil, note, note[:len(note)-1], append(bytes.Clone(note), note...), append([]byte("\n\n"), note...), []byte("\n\n\n\n\n"), []byte("— \n\n— \n\n")} {
		f.Add(s)
	}
	path := filepath.Join(f.TempDir(), "checkpoints")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		rest := text
		for claim, err := range notary.Claims("a place", path) {
			if err != nil {
				break
			}
			_, behind, ok := bytes.Cut(rest, claim.Note)
			if !ok {
				t.Fatalf("%q is not in %q, in its order", claim.Note, text)
			}
			if rest = behind; len(claim.Note) > 2*audit.MaxNote {
				t.Errorf("a checkpoint of %d bytes", len(claim.Note))
			}
		}
		if err := os.WriteFile(path, append(bytes.Clone(note), text...), 0o600); err != nil {
			t.Fatal(err)
		}
		for claim, err := range notary.Claims("a place", path) {
			if err != nil || !bytes.Equal(claim.Note, c.Note) {
				t.Errorf("before %q the first is %q, %v", text, claim.Note, err)
			}
			break
		}
	})
}
