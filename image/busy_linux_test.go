package image

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The kernel gives up on a path with ".." while anybody renames or mounts
// anything: a host that is busy must still find what is there (R3).
func TestOpenWhileTheHostIsBusy(t *testing.T) {
	s, _ := newStore(t)
	made := take(t, s, archive(t, item{name: "etc/text", content: "inside"}, item{name: "a/b/c/up", kind: tar.TypeSymlink, target: "../../../etc/text"}))

	stop := make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(stop)
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	if err := os.Mkdir(one, 0o700); err != nil {
		t.Fatal(err)
	}
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(one, other)
				_ = os.Rename(other, one)
			}
		}
	})
	for range 5000 {
		f, err := made.Image.Open("/a/b/c/up")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(text) != "inside" {
			t.Fatalf("%q, %v", text, err)
		}
	}
}
