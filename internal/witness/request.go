package witness

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/audit"
)

// A request is the body of add-checkpoint: the size that the log takes the
// witness to have seen, the proof from there, and the checkpoint.
type request struct {
	old   uint64
	proof []audit.Hash
	note  []byte
}

// Bounds of the protocol.
const (
	maxProof   = 63 // hashes, as C2SP says
	maxRequest = 64 << 10
	sizeType   = "text/x.tlog.size"
	path       = "/add-checkpoint"
)

// lastPath is where the last checkpoint of a log is that this witness cosigned. The
// protocol has no such door; who finds none takes a witness's objection for a hint.
func lastPath(origin string) string {
	return lastPrefix + name(origin)
}

const lastPrefix = "/last/"

// name is that of a log in paths.
func name(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return hex.EncodeToString(sum[:])
}

var errRequest = errors.New("not an add-checkpoint request")

func (r request) encode() []byte {
	b := fmt.Appendf(nil, "old %d\n", r.old)
	for _, h := range r.proof {
		b = fmt.Appendln(b, base64.StdEncoding.EncodeToString(h[:]))
	}
	return append(append(b, '\n'), r.note...)
}

// decode reads what encode writes, and nothing else.
func decode(body []byte) (request, error) {
	head, note, ok := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	old, isOld := strings.CutPrefix(lines[0], "old ")
	n, plain := plainNumber(old)
	if !ok || !isOld || !plain || len(lines) > 1+maxProof {
		return request{}, errRequest
	}
	r := request{old: n, note: []byte(note)}
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != len(audit.Hash{}) {
			return request{}, errRequest
		}
		r.proof = append(r.proof, audit.Hash(h))
	}
	return r, nil
}
