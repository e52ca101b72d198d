package bundle_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
)

// A held is a content that is no Bundle, so that nothing takes the short way.
type held struct{ bundle.Content }

// B1: files that are handed on one by one, in any order, or of which a store kept
// the entries alone, have the digest and the faults of the Bundle of all of them.
func TestOneByOneIsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, decl := anyFiles(t), anyDeclaration(t)
		want, wantErr := bundle.New(files, decl, bundle.Limits{})

		list := bundle.NewLister(bundle.Limits{})
		build := bundle.NewBuilder(bundle.Limits{})
		var entries []bundle.Entry
		buf := make([]byte, 0, 64) // used again for each file, as a reader does
		failed := false
		for _, f := range rapid.Permutation(files).Draw(t, "order") {
			buf = append(buf[:0], f.Data...)
			e, err := list.Add(f.Path, buf)
			if again := build.Add(f.Path, buf); (err == nil) != (again == nil) {
				t.Fatalf("one refuses %q: %v, and the other does not: %v", f.Path, err, again)
			}
			if failed = err != nil; failed {
				break
			}
			entries = append(entries, e)
		}
		clear(buf[:cap(buf)])
		if failed {
			if wantErr == nil {
				t.Fatal("a file was refused that New takes")
			}
			return
		}
		l, err := list.Listing(decl)
		b, err2 := build.Bundle(decl)
		kept, err3 := bundle.NewListing(entries, decl, bundle.Limits{})
		for _, err := range []error{err, err2, err3} {
			if (err == nil) != (wantErr == nil) || wantErr != nil && err.Error() != wantErr.Error() {
				t.Fatalf("the error is %v, want that of New, %v", err, wantErr)
			}
		}
		if wantErr != nil {
			return
		}
		if l.Digest() != want.Digest() || b.Digest() != want.Digest() || kept.Digest() != want.Digest() {
			t.Fatalf("the digests are %s, %s and %s, want %s", l.Digest(), b.Digest(), kept.Digest(), want.Digest())
		}
		loaded, err := bundle.Load(held{want})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []bundle.Bundle{b, loaded} {
			if d := cmp.Diff(want.Files(), got.Files()); d != "" {
				t.Errorf("the files (-want +got):\n%s", d)
			}
		}
		if d := cmp.Diff(want.Listing().Entries(), kept.Entries()); d != "" {
			t.Errorf("the entries (-want +got):\n%s", d)
		}
	})
}

// A file that was refused is not passed over, and what was listed does not change.
func TestListerEnds(t *testing.T) {
	l, b := bundle.NewLister(bundle.Limits{}), bundle.NewBuilder(bundle.Limits{})
	_, err := l.Add("../a", nil)
	if err2 := b.Add("../a", nil); !errors.Is(err, bundle.ErrPath) || !errors.Is(err2, bundle.ErrPath) {
		t.Errorf("the errors are %v and %v", err, err2)
	}
	_, again := l.Add("a", nil)
	_, last := l.Listing(nil)
	_, built := b.Bundle(nil)
	for _, err := range []error{again, last, built, b.Add("a", nil)} {
		if !errors.Is(err, bundle.ErrPath) {
			t.Errorf("after a file was refused: err = %v", err)
		}
	}
	b = bundle.NewBuilder(bundle.Limits{})
	err = b.Add("b", []byte("1"))
	made, err2 := b.Bundle(nil)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	digest := made.Digest()
	if err := b.Add("a", []byte("2")); err == nil {
		t.Error("a file can be added behind the end")
	}
	if _, err := b.Bundle(nil); err == nil || made.Digest() != digest || len(made.Paths()) != 1 {
		t.Errorf("a second bundle: err = %v; the first has %q", err, made.Paths())
	}
}

// What is read in pieces differs as what is in memory does.
func TestChangesIsDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, err := bundle.New(anyFiles(t), anyDeclaration(t), bundle.Limits{})
		new, err2 := bundle.New(anyFiles(t), anyDeclaration(t), bundle.Limits{})
		if errors.Join(err, err2) != nil {
			return // not a bundle: nothing to say
		}
		var got []bundle.Change
		for c, err := range bundle.Changes(held{old}, held{new}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c)
		}
		if d := cmp.Diff(bundle.Diff(old, new), got); d != "" {
			t.Errorf("(-diff +changes):\n%s", d)
		}
	})
}

// A serving is a content that answers with whatever bytes it has.
type serving struct {
	bundle.Bundle
	data map[string]string
}

func (s serving) ReadFile(path string) ([]byte, error) {
	data, ok := s.data[path]
	if !ok {
		return nil, errGone
	}
	return []byte(data), nil
}

var errGone = errors.New("the medium is gone")

// B1: no reader of a content takes bytes that are not those of its listing.
func TestReadCompares(t *testing.T) {
	b := mustNew(t, "", file("a", "1"), file("b", "2"))
	for _, tt := range []struct {
		name, path string
		data       map[string]string
		want       error
	}{
		{"the bytes", "b", map[string]string{"a": "1", "b": "2"}, nil},
		{"another byte", "b", map[string]string{"a": "1", "b": "3"}, bundle.ErrAltered},
		{"a byte more", "b", map[string]string{"a": "1", "b": "22"}, bundle.ErrAltered},
		{"nothing", "b", map[string]string{"a": "1", "b": ""}, bundle.ErrAltered},
		{"the bytes of another file", "b", map[string]string{"a": "1", "b": "1"}, bundle.ErrAltered},
		{"an error", "b", map[string]string{"a": "1"}, errGone},
		{"a file that is not listed", "c", map[string]string{"a": "1", "b": "2", "c": "3"}, fs.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serving{b, tt.data}
			data, err := bundle.Read(c, tt.path)
			if !errors.Is(err, tt.want) || err != nil && data != nil || err == nil && string(data) != "2" {
				t.Errorf("Read answers %q, %v; want the error %v", data, err, tt.want)
			}
			if tt.path == "c" {
				return
			}
			if loaded, err := bundle.Load(c); !errors.Is(err, tt.want) || err != nil && !loaded.IsZero() {
				t.Errorf("Load answers %d files, %v; want the error %v", len(loaded.Paths()), err, tt.want)
			}
			var last error
			for _, err := range bundle.Changes(c, bundle.Bundle{}) {
				last = err
			}
			if !errors.Is(last, tt.want) {
				t.Errorf("Changes ends with the error %v, want %v", last, tt.want)
			}
		})
	}
}

// A listing is within limits, and refused by them, as the bundle is.
func TestNewListingRefuses(t *testing.T) {
	one := bundle.Sum([]byte("1"))
	for _, tt := range []struct {
		name    string
		entries []bundle.Entry
		limits  bundle.Limits
		want    error
	}{
		{"nothing amiss", []bundle.Entry{{"a", 1, one}, {"b", 1, one}}, bundle.Limits{}, nil},
		{"a path that is none", []bundle.Entry{{"../a", 1, one}}, bundle.Limits{}, bundle.ErrPath},
		{"a name twice", []bundle.Entry{{"a", 1, one}, {"b", 1, one}, {"a", 1, one}}, bundle.Limits{}, bundle.ErrPath},
		{"twins", []bundle.Entry{{"a", 1, one}, {"A", 1, one}}, bundle.Limits{}, bundle.ErrTwins},
		{"a size below zero", []bundle.Entry{{"a", -1, one}}, bundle.Limits{}, bundle.ErrLimit},
		{"too many", []bundle.Entry{{"a", 1, one}, {"b", 1, one}}, bundle.Limits{Files: 1}, bundle.ErrLimit},
		{"too large", []bundle.Entry{{"a", 2, one}}, bundle.Limits{FileBytes: 1}, bundle.ErrLimit},
		{"too large in all", []bundle.Entry{{"a", 1, one}, {"b", 1, one}}, bundle.Limits{TotalBytes: 1}, bundle.ErrLimit},
		{"sizes whose sum wraps around", slices.Repeat([]bundle.Entry{{"a", 1<<63 - 1, one}}, 3), bundle.Limits{FileBytes: 1<<63 - 1, TotalBytes: 1<<63 - 1}, bundle.ErrLimit},
		{"a negative limit", []bundle.Entry{{"a", 1, one}}, bundle.Limits{Files: -1}, bundle.ErrLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := bundle.NewListing(tt.entries, nil, tt.limits)
			if !errors.Is(err, tt.want) || err != nil && !l.IsZero() {
				t.Errorf("NewListing answers %d files, %v; want the error %v", len(l.Paths()), err, tt.want)
			}
		})
	}
	var zero bundle.Listing
	if n, size := zero.Size(); !zero.IsZero() || !zero.Digest().IsZero() || zero.Manifest() != nil || zero.Paths() != nil || zero.Entries() != nil || zero.Declaration() != nil || n != 0 || size != 0 {
		t.Error("the zero Listing is not empty")
	}
	if b, err := bundle.Load(held{bundle.Bundle{}}); err != nil || !b.IsZero() {
		t.Errorf("Load of the zero Bundle answers %v, %v", b, err)
	}
}
