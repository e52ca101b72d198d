package runnerapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// B10: an upload counts with the names of its files: many long names are not nothing.
func TestShelfCountsNames(t *testing.T) {
	t.Parallel()
	var files []bundle.File
	names := 0
	for i := range 100 {
		f := bundle.File{Path: fmt.Sprintf("%s/%s/%d", strings.Repeat("d", 200), strings.Repeat("e", 200), i)}
		names += len(f.Path)
		files = append(files, f)
	}
	b, err := bundle.New(files, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(1 << 20)
	if err := s.put("peer", b); err != nil {
		t.Fatal(err)
	}
	if want := int64(names + len(files)*perFile); s.all != want || s.peers["peer"] != want {
		t.Errorf("B10: %d bytes are counted, %d of the peer, want %d", s.all, s.peers["peer"], want)
	}
}
