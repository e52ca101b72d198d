package sqlstore

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
)

// A row that no digest covers has a sum of what it says, so that a byte that was
// changed on the disk is an error and not another grant or limit. It keeps nobody
// out who can write: that the rows agree with the log is another matter. What was
// written before there were sums has none, and is taken as it is.
const sumBytes = 16

// sum is over values of the types string, []byte, int64, bool and sql.Null[int64].
func sum(values ...any) []byte {
	h := sha256.New()
	write := func(kind byte, b []byte) {
		h.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(b))))
		h.Write(b)
	}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			write('s', []byte(v))
		case []byte:
			write('b', v)
		case int64:
			write('n', binary.BigEndian.AppendUint64(nil, uint64(v)))
		case bool:
			write('n', binary.BigEndian.AppendUint64(nil, uint64(number(v))))
		case sql.Null[int64]:
			if !v.Valid {
				write('0', nil)
				break
			}
			write('n', binary.BigEndian.AppendUint64(nil, uint64(v.V)))
		default:
			panic(fmt.Sprintf("sqlstore: a sum over a %T", v))
		}
	}
	return h.Sum(nil)[:sumBytes]
}

// unlike reports whether kept is the sum of another row. No sum is none.
func unlike(kept []byte, values ...any) bool {
	return kept != nil && !bytes.Equal(kept, sum(values...))
}

func grantValues(g grant.Grant) []any {
	return []any{g.Ref.Tenant, g.ID, g.Ref.Skill, g.Ref.Script, g.Ref.AllScripts, g.Pin[:], g.Reason, g.Source, g.GrantedBy,
		g.Granted.UnixMicro(), micros(g.Expires), micros(g.Revoked), g.RevokedBy, string(g.MinTier)}
}

func versionValues(v admin.Version) []any {
	return []any{v.Tenant, v.ID, v.Skill, v.Digest[:], v.Stored, v.Source, v.Reason, v.By, v.Imported.UnixMicro(), v.Deleted}
}

// withSum returns text, which has no line feed, with the sum of it and its keys
// behind one.
func withSum(text []byte, keys ...any) string {
	return string(text) + "\n" + hex.EncodeToString(sum(append(keys, text)...))
}

// withoutSum returns the text that withSum was given, or says that it is another one.
func withoutSum(kept []byte, keys ...any) ([]byte, error) {
	text, digits, ok := bytes.Cut(kept, []byte("\n"))
	if ok && string(digits) != hex.EncodeToString(sum(append(keys, text)...)) {
		return nil, fmt.Errorf("it was changed where it is kept")
	}
	return text, nil
}
