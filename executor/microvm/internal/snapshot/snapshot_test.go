package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// saved returns a memory of three MiB with bytes at its begin, in its middle and at its
// end.
func saved(t testing.TB, mark byte) (*os.File, Info) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	const size = 3 << 20
	err = f.Truncate(size)
	for _, at := range []int64{0, 1<<20 - 1, 2<<20 + 5, size - 1} {
		if err == nil {
			_, err = f.WriteAt([]byte{mark}, at)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, Info{Key: bundle.Sum([]byte{mark}), Memory: size, Counter: 7}
}

func opened(t testing.TB, dir string, most int64) *Store {
	t.Helper()
	s, err := Open(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func empty(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "loaded"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t testing.TB, f *os.File) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What was saved is what is loaded; pages of zeros are not in the file, and a folder that
// others can read is none for it.
func TestRound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	s := opened(t, dir, 1<<30)
	memory, info := saved(t, 1)
	if _, _, err := s.Load(info.Key, empty(t)); !errors.Is(err, ErrNone) {
		t.Errorf("before it was saved: %v", err)
	}
	if err := s.Save(t.Context(), info, memory, []byte("state")); err != nil {
		t.Fatal(err)
	}
	into := empty(t)
	got, state, err := s.Load(info.Key, into)
	info.State = 5
	if err != nil || got != info || string(state) != "state" || !bytes.Equal(content(t, into), content(t, memory)) {
		t.Errorf("got %+v, %q, %v", got, state, err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 1 || list[0].Info != info || list[0].Err != nil || list[0].Bytes > 20<<10 {
		t.Errorf("the list: %+v, %v", list, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, 1<<30); err == nil {
		t.Error("a folder that others may write to is taken")
	}
}

// B1: a snapshot that was cut off, altered at any place, or is another one is refused, and
// one that is made anew takes its place.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 1<<30)
	memory, info := saved(t, 1)
	if err := s.Save(t.Context(), info, memory, []byte("state")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, info.Key.Hex())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, otherInfo := saved(t, 2)
	if err := s.Save(t.Context(), otherInfo, other, nil); err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(filepath.Join(dir, otherInfo.Key.Hex()))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	// Its sum holds: who wrote it knew how, and wrote the head in another way.
	spelled := func(was, is string) []byte {
		b := bytes.Replace(whole[:len(whole)-sha256.Size], []byte(was), []byte(is), 1)
		sum := sha256.Sum256(b)
		return append(b, sum[:]...)
	}
	if !bytes.Equal(spelled("", ""), whole) {
		t.Fatal("the sum is made in another way")
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"a member's name in another case", spelled(`"state":5`, `"STATE":5`)},
		{"another order", spelled(`"state":5,"counter":7`, `"counter":7,"state":5`)},
		{"nothing", nil},
		{"another", another},
		{"its begin", changed(0)},
		{"its head", changed(len(magic) + 10)},
		{"its state", changed(bytes.Index(whole, []byte("state5")) + len("state5"))},
		{"its memory", changed(len(whole) - 5000)},
		{"its digest", changed(len(whole) - 1)},
		{"cut off", whole[:len(whole)-1]},
		{"cut off in the middle", whole[:len(whole)/2]},
		{"longer", append(bytes.Clone(whole), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := errors.Join(os.Remove(path), os.WriteFile(path, c.file, 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Load(info.Key, empty(t)); !errors.Is(err, ErrTorn) {
				t.Errorf("B1: got %v", err)
			}
			if list, err := List(dir); err != nil || len(list) != 2 || errors.Is(list[0].Err, ErrTorn) == errors.Is(list[1].Err, ErrTorn) {
				t.Errorf("the list: %+v, %v", list, err)
			}
			if err := s.Save(t.Context(), info, memory, []byte("state")); err != nil {
				t.Fatal(err)
			}
			if _, state, err := s.Load(info.Key, empty(t)); err != nil || string(state) != "state" {
				t.Errorf("made anew: %q, %v", state, err)
			}
		})
	}
}

// B10: the snapshots have no more bytes than they may: the one that was used last stays,
// and those that nobody needs go.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, 60<<10) // a snapshot has 16 KiB and a bit
	var keys []bundle.Digest
	for n := range byte(4) {
		memory, info := saved(t, n+1)
		if err := s.Save(t.Context(), info, memory, nil); err != nil {
			t.Fatal(err)
		}
		if n == 2 { // the first is used again, and was the oldest
			if _, _, err := s.Load(keys[0], empty(t)); err != nil {
				t.Fatal(err)
			}
		} else {
			old := time.Now().Add(time.Duration(n) * time.Minute).Add(-time.Hour)
			if err := os.Chtimes(s.path(info.Key), old, old); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, info.Key)
	}
	there := func() (got []bool) {
		for _, k := range keys {
			_, err := os.Stat(s.path(k))
			got = append(got, err == nil)
		}
		return got
	}
	if got := fmt.Sprint(there()); got != "[true false true true]" {
		t.Errorf("B10: there are %s", got)
	}
	old := time.Now().Add(-Unused - time.Hour)
	if err := errors.Join(os.Chtimes(s.path(keys[2]), old, old), os.WriteFile(filepath.Join(dir, newName+"1"), make([]byte, 100), 0o600)); err != nil {
		t.Fatal(err)
	}
	memory, info := saved(t, 1)
	if err := s.Save(t.Context(), info, memory, nil); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(there()); got != "[true false false true]" {
		t.Errorf("B10: of those that nobody used there are %s", got)
	}
	if err := opened(t, dir, 100).Save(t.Context(), info, memory, nil); !errors.Is(err, ErrFull) {
		t.Errorf("B10: one that is too large: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // two snapshots and the lock
		t.Errorf("B10: the folder has %v, %v", entries, err)
	}
}

// Several that save and load the same at once do not disturb each other: what is loaded is
// whole.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	memory, info := saved(t, 1)
	want := content(t, memory)
	var all sync.WaitGroup
	for range 4 {
		s, into := opened(t, dir, 1<<30), empty(t)
		all.Go(func() {
			for range 5 {
				if err := s.Save(context.Background(), info, memory, []byte("s")); err != nil {
					t.Error(err)
				}
				_, state, err := s.Load(info.Key, into)
				if err == nil {
					var got []byte
					if got, err = os.ReadFile(into.Name()); !bytes.Equal(got, want) {
						t.Error("another memory is loaded than was saved")
					}
				}
				if err != nil || string(state) != "s" {
					t.Errorf("got %q, %v", state, err)
				}
			}
		})
	}
	all.Wait()
	s := opened(t, dir, 1<<30)
	if err := errors.Join(s.Remove(info.Key), s.Remove(info.Key)); err != nil {
		t.Error(err)
	}
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("removed: %v, %v", list, err)
	}
}

// Whatever a file has, nothing that is not whole is taken, and no more than is there.
func FuzzDecode(f *testing.F) {
	memory, info := saved(f, 1)
	var b bytes.Buffer
	if err := encode(&b, info, memory, []byte("state")); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:100])
	f.Fuzz(func(t *testing.T, in []byte) {
		i, state, err := decode(bytes.NewReader(in), nowhere{})
		if err != nil {
			return
		}
		if !i.valid() || len(state) != i.State {
			t.Errorf("got %+v with %d bytes of state", i, len(state))
		}
	})
}
