package audit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// MaxNote is the most bytes that a checkpoint may have, with all its signatures.
const MaxNote = 16 << 10

// ErrCheckpoint is wrapped by the error for bytes that are no checkpoint.
var ErrCheckpoint = errors.New("audit: not a checkpoint")

// A Checkpoint says, signed, that the log of that name had so many entries and
// that root. The zero Checkpoint says nothing. Its form is that of C2SP
// (tlog-checkpoint, signed-note).
type Checkpoint struct {
	Origin string
	Tree   Tree
	Note   []byte // text and signatures, as they were signed
}

// IsZero reports whether c says nothing.
func (c Checkpoint) IsZero() bool { return c.Note == nil }

// Checkpoint signs that the log had the tree t.
func (k SigningKey) Checkpoint(t Tree) (Checkpoint, error) {
	if k.IsZero() {
		return Checkpoint{}, fmt.Errorf("%w: there is none to sign with", ErrKey)
	}
	text := fmt.Sprintf("%s\n%d\n%s\n", k.Origin(), t.Size, base64.StdEncoding.EncodeToString(t.Root[:]))
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	return Checkpoint{k.Origin(), t, signed}, err
}

// OpenCheckpoint reads a checkpoint that one of keys has signed for its own log.
//
// # Errors
//
// ErrCheckpoint for what is none; ErrUnsigned where no signature of keys is on
// it, or one that does not hold.
func OpenCheckpoint(signed []byte, keys ...PublicKey) (Checkpoint, error) {
	c, err := ParseCheckpoint(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	known, err := verifiers(slices.DeleteFunc(slices.Clone(keys), func(k PublicKey) bool { return k.Origin() != c.Origin }))
	if err != nil {
		return Checkpoint{}, err
	}
	if _, err := note.Open(signed, known); err != nil {
		return Checkpoint{}, fmt.Errorf("%w: the checkpoint of %d entries of %q has no signature that holds", ErrUnsigned, c.Tree.Size, c.Origin)
	}
	return c, nil
}

// ParseCheckpoint reads a checkpoint and takes its signatures for what they say:
// for those who verify later. Its errors wrap ErrCheckpoint.
func ParseCheckpoint(signed []byte) (Checkpoint, error) {
	bad := func(why string) (Checkpoint, error) { return Checkpoint{}, fmt.Errorf("%w: %s", ErrCheckpoint, why) }
	if len(signed) > MaxNote {
		return bad(fmt.Sprintf("it has %d bytes, at most %d", len(signed), MaxNote))
	}
	nobody := note.VerifierList()
	_, err := note.Open(signed, nobody)
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	if !ok {
		return bad("it has not the form of a signed note")
	}
	for _, sig := range unverified.Note.UnverifiedSigs {
		if _, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil {
			return bad("a signature has a second text") // note takes what stands in the last bits for nothing
		}
	}
	lines := strings.Split(strings.TrimSuffix(unverified.Note.Text, "\n"), "\n")
	if len(lines) < 3 || lines[0] == "" {
		return bad("it has no origin, size and root")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return bad("its size is no plain number")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(Hash{}) {
		return bad("its root is no hash in base64")
	}
	if slices.Contains(lines[3:], "") {
		return bad("a line of its text is empty")
	}
	return Checkpoint{lines[0], Tree{uint64(size), Hash(root)}, slices.Clone(signed)}, nil
}
