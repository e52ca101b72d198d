//go:build linux

package image

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"strings"
	"testing"
)

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An archive that broke off or was altered on its way is refused whole, wherever
// that happened.
func TestWhole(t *testing.T) {
	whole := archive(t, small...)
	entries := len(whole) - 1024 // where the end mark begins
	zeros := make([]byte, 4096)
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	zipped := zip(t, whole)
	tests := []struct {
		name string
		data []byte
		says string // nothing: it is imported
	}{
		{"whole", whole, ""},
		{"zeros behind the end mark", append(bytes.Clone(whole), zeros...), ""},
		{"whole gzip", zipped, ""},
		{"whole gzip with zeros", zip(t, append(bytes.Clone(whole), zeros...)), ""},
		{"cut between two entries", whole[:entries], "breaks off"},
		{"cut within the end mark", whole[:entries+512], "breaks off"},
		{"cut within the second block of zeros", whole[:entries+700], "no tar archive"},
		{"a byte behind the end mark", append(bytes.Clone(whole), 'x'), "behind its end mark"},
		{"a byte far behind the end mark", append(append(bytes.Clone(whole), bytes.Repeat(zeros, 16)...), 'x'), "behind its end mark"},
		{"two archives in a row", append(bytes.Clone(whole), whole...), "behind its end mark"},
		{"too many zeros behind the end mark", append(bytes.Clone(whole), make([]byte, 2<<20)...), "longer"},
		{"gzip cut between two entries", zip(t, whole[:entries]), "breaks off"},
		{"gzip of two archives", zip(t, append(bytes.Clone(whole), whole...)), "behind its end mark"},
		{"two gzips in a row", append(bytes.Clone(zipped), zipped...), "behind its end mark"},
		{"gzip with another checksum", flip(zipped, len(zipped)-8), "checksum"},
		{"gzip with another length", flip(zipped, len(zipped)-1), "checksum"},
		{"gzip without its checksum", zipped[:len(zipped)-8], "to its end"},
		{"gzip with something behind it", append(bytes.Clone(zipped), "more"...), "to its end"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			made, err := s.ImportTar(t.Context(), bytes.NewReader(tc.data), Limits{Bytes: 1 << 10, Entries: 20})
			if err == nil {
				made.Image.Close()
			}
			if tc.says == "" {
				if err != nil || made.Digest.String() != smallDigest {
					t.Errorf("err = %v, want the image", err)
				}
				return
			}
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("case 40: there is still %v", left)
			}
		})
	}
	// Whichever byte of a compressed archive is another one, its content is not.
	for at := range zipped {
		s, _ := newStore(t)
		made, err := s.ImportTar(t.Context(), bytes.NewReader(flip(zipped, at)), Limits{})
		if err != nil {
			continue
		}
		made.Image.Close()
		if made.Digest.String() != smallDigest { // gzip's own header says nothing of the content
			t.Errorf("with byte %d altered it is imported as %s", at, made.Digest)
		}
	}
}
