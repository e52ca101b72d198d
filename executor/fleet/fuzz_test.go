package fleet

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/bundle"
)

// Case 54: what a runner or a control plane sends is read within its bounds, or refused (M02).
func FuzzRead(f *testing.F) {
	f.Add("answer", "1", "run", "2", "0", []byte("{}"))
	f.Add("begun", "1", "bundle", "9223372036854775807", "9223372036854775807", []byte("x"))
	f.Add("output", "1", "stdout", "2", "0", []byte("x"))
	f.Add("problem", "", "run", "-1", "+1", []byte(`{"files":[{"path":"a","data":""}]}`))
	f.Fuzz(func(t *testing.T, kind, run, part, size, offset string, body []byte) {
		h := nats.Header{headKind: {kind}, headRun: {run}, headPart: {part}, headSize: {size}, headOffset: {offset}, headSHA256: {digest(body)}, headStream: {part}}
		if e, err := readEvent(h, body); err == nil && (e.size > maxAnswer || e.size < 0 || e.kind == kindAnswer && len(body) > 0 && int64(len(body)) != e.size) {
			t.Errorf("M02: an event of %d bytes says %d", len(body), e.size)
		}
		if e, err := readEvent(h, body); err == nil && e.kind == kindOutput && e.output().Check() != nil {
			t.Errorf("M01: output of %d bytes at %d", len(e.body), e.offset)
		}
		if c, err := readChunk(h, body); err == nil && (c.offset < 0 || len(c.data) == 0 || c.offset+int64(len(c.data)) > c.size || c.size > maxClosure) {
			t.Errorf("M02: a chunk of %d bytes at %d of %d", len(c.data), c.offset, c.size)
		}
		h[headSession] = []string{part}
		if b, whole, err := readBegin(h, body); err == nil && part != "" && (b.Session != part || b.Run != run || len(whole) == 0 || len(whole) > chunkSize) {
			t.Errorf("M02: a begin of %d bytes is %+v", len(body), b)
		}
		var o offer
		_ = decode(body, &o) // it must not panic
		if b, err := readClosure(body, bundle.Sum(body).String(), bundle.Limits{}); err == nil && b.Digest() != bundle.Sum(body) {
			t.Error("a closure has another digest than was asked for")
		}
	})
}

// No two names are one token, and none is a wildcard, two tokens or no label.
func FuzzToken(f *testing.F) {
	f.Add("python-3.12", "python-3_2e12")
	f.Add("_", "")
	f.Add("a.>", "*")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{token(a), token(b)} {
			for _, c := range []byte(s) {
				if c == '.' || c == '*' || c == '>' || c <= ' ' {
					t.Errorf("the token %q has the byte %q", s, c)
				}
			}
			if s == noLabel {
				t.Error("a name is no label")
			}
		}
		if a != b && token(a) == token(b) {
			t.Errorf("%q and %q are one token", a, b)
		}
	})
}
