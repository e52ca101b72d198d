package bundle_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/bundle"
)

// R15, B1: each limit holds at its bound and refuses one above it, in New and
// in Within alike.
func TestLimits(t *testing.T) {
	tests := []struct {
		name        string
		limits      bundle.Limits
		declaration string
		fits, over  []bundle.File
	}{
		{
			name: "bytes of a file", limits: bundle.Limits{FileBytes: 4},
			fits: []bundle.File{file("a", "1234")}, over: []bundle.File{file("a", "12345")},
		},
		{
			name: "bytes in all", limits: bundle.Limits{TotalBytes: 4},
			fits: []bundle.File{file("a", "12"), file("b", "34")}, over: []bundle.File{file("a", "12"), file("b", "345")},
		},
		{
			name: "number of files", limits: bundle.Limits{Files: 2},
			fits: []bundle.File{file("a", ""), file("b", "")}, over: []bundle.File{file("a", ""), file("b", ""), file("c", "")},
		},
		{
			name: "depth", limits: bundle.Limits{Depth: 2},
			fits: []bundle.File{file("a/b", "")}, over: []bundle.File{file("a/b/c", "")},
		},
		{
			name: "bytes of a path", limits: bundle.Limits{PathBytes: 4},
			fits: []bundle.File{file("éé", "")}, over: []bundle.File{file("ééx", "")},
		},
		{
			name: "default bytes of a file",
			fits: []bundle.File{file("a", strings.Repeat("x", 8<<20))}, over: []bundle.File{file("a", strings.Repeat("x", 8<<20+1))},
		},
		{
			name: "default number of files",
			fits: many(2048), over: many(2049),
		},
		{
			name: "default depth",
			fits: []bundle.File{file(strings.Repeat("d/", 15)+"f", "")}, over: []bundle.File{file(strings.Repeat("d/", 16)+"f", "")},
		},
		{
			name: "default bytes of a path",
			fits: []bundle.File{file(strings.Repeat("p", 255)+"/"+strings.Repeat("p", 254)+"/p", "")},
			over: []bundle.File{file(strings.Repeat("p", 255)+"/"+strings.Repeat("p", 255)+"/p", "")},
		},
	}
	roomy := bundle.Limits{FileBytes: 1 << 30, TotalBytes: 1 << 30, Files: 1 << 20, Depth: 1 << 10, PathBytes: 1 << 10}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := bundle.New(tt.fits, nil, tt.limits)
			if err != nil {
				t.Errorf("at the bound: %v", err)
			}
			if err := b.Within(tt.limits); err != nil {
				t.Errorf("at the bound, Within: %v", err)
			}
			if _, err := bundle.New(tt.over, nil, tt.limits); !errors.Is(err, bundle.ErrLimit) || !errors.Is(err, bundle.ErrContent) {
				t.Errorf("one above: got %v, want ErrLimit within ErrContent", err)
			}
			big, err := bundle.New(tt.over, nil, roomy)
			if err != nil {
				t.Fatal(err)
			}
			if err := big.Within(tt.limits); !errors.Is(err, bundle.ErrLimit) {
				t.Errorf("one above, Within: got %v, want ErrLimit", err)
			}
		})
	}
}

func many(n int) []bundle.File {
	files := make([]bundle.File, n)
	for i := range files {
		files[i] = file("f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+"/"+strings.Repeat("y", i/26+1), "")
	}
	return files
}

func TestDefaultTotal(t *testing.T) {
	files := []bundle.File{file("a", strings.Repeat("x", 8<<20)), file("b", strings.Repeat("x", 8<<20)), file("c", strings.Repeat("x", 8<<20)), file("d", strings.Repeat("x", 8<<20))}
	if _, err := bundle.New(files, nil, bundle.Limits{}); err != nil {
		t.Errorf("32 MiB: %v", err)
	}
	if _, err := bundle.New(append(files, file("e", "x")), nil, bundle.Limits{}); !errors.Is(err, bundle.ErrLimit) {
		t.Errorf("32 MiB and a byte: got %v, want ErrLimit", err)
	}
}

// The declaration counts as a file does.
func TestLimitOfTheDeclaration(t *testing.T) {
	limits := bundle.Limits{FileBytes: 4}
	if _, err := bundle.New(nil, []byte("1234"), limits); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	if _, err := bundle.New(nil, []byte("12345"), limits); !errors.Is(err, bundle.ErrLimit) {
		t.Errorf("one above: got %v, want ErrLimit", err)
	}
	if err := mustNew(t, "12345").Within(limits); !errors.Is(err, bundle.ErrLimit) {
		t.Errorf("one above, Within: got %v, want ErrLimit", err)
	}
}

// A negative limit is a mistake, never "no limit", even where nothing is there
// that could be over it.
func TestNegativeLimits(t *testing.T) {
	for name, limits := range map[string]bundle.Limits{
		"fileBytes": {FileBytes: -1}, "totalBytes": {TotalBytes: -1}, "files": {Files: -1}, "depth": {Depth: -1}, "pathBytes": {PathBytes: -1},
	} {
		if _, err := bundle.New(nil, nil, limits); !errors.Is(err, bundle.ErrLimit) {
			t.Errorf("%s: New: got %v, want ErrLimit", name, err)
		}
		if err := mustNew(t, "").Within(limits); !errors.Is(err, bundle.ErrLimit) {
			t.Errorf("%s: Within: got %v, want ErrLimit", name, err)
		}
	}
}

// B1: the bytes that were hashed are the bytes that run. Neither the caller's
// slices nor those handed out lead back into a Bundle.
func TestBundleNeverChanges(t *testing.T) {
	files := []bundle.File{file("a", "old"), file("b", "old")}
	declaration := []byte("old")
	b, err := bundle.New(files, declaration, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	digest, manifest := b.Digest(), string(b.Manifest())

	copy(files[0].Data, "new")
	files[1] = file("c", "new")
	copy(declaration, "new")
	copy(b.Files()[0].Data, "new")
	b.Files()[1].Path = "c"
	b.Paths()[0] = "c"
	copy(b.Declaration(), "new")
	clear(b.Manifest())
	f, err := b.FS().Open("a")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	if _, err := f.Read(buf); err != nil {
		t.Fatal(err)
	}
	clear(buf)

	if got, _, _ := b.Text("a"); got != "old" {
		t.Errorf("content is %q, want %q", got, "old")
	}
	if got := b.Paths(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("paths are %q", got)
	}
	if string(b.Declaration()) != "old" || b.Digest() != digest || string(b.Manifest()) != manifest {
		t.Error("declaration, digest or manifest changed")
	}
	if again := mustNew(t, "old", b.Files()...); again.Digest() != digest {
		t.Error("the files that it hands out have another digest")
	}
}

// Zero is closed: the zero Bundle has the zero Digest, which no grant can pin;
// an empty bundle is something else.
func TestZeroBundle(t *testing.T) {
	var zero bundle.Bundle
	if !zero.IsZero() || !zero.Digest().IsZero() || zero.Manifest() != nil || zero.Files() != nil || zero.Paths() != nil || zero.Declaration() != nil {
		t.Error("the zero Bundle holds something")
	}
	if _, _, ok := zero.Text(""); ok {
		t.Error("the zero Bundle has a file")
	}
	if files, bytes := zero.Size(); files != 0 || bytes != 0 {
		t.Errorf("size is %d files, %d bytes", files, bytes)
	}
	if err := zero.Within(bundle.Limits{}); err != nil {
		t.Errorf("Within: %v", err)
	}
	if empty := mustNew(t, ""); empty.IsZero() || empty.Digest().IsZero() {
		t.Error("an empty bundle is the zero Bundle")
	}
}

func TestText(t *testing.T) {
	b := mustNew(t, "", file("a/x.py", "1"), file("a-x", "2"))
	for _, tt := range []struct {
		path, data string
		ok         bool
	}{
		{"a/x.py", "1", true},
		{"a-x", "2", true},
		{"a", "", false},
		{"A/x.py", "", false},
		{"a//x.py", "", false},
		{"./a-x", "", false},
		{"a/../a-x", "", false},
		{"a-x\x00", "", false},
		{"", "", false},
	} {
		data, digest, ok := b.Text(tt.path)
		if data != tt.data || ok != tt.ok {
			t.Errorf("Text(%q) is %q, %t; want %q, %t", tt.path, data, ok, tt.data, tt.ok)
		}
		if want := bundle.Sum([]byte(tt.data)); ok && digest != want {
			t.Errorf("Text(%q) has the digest %s, want %s", tt.path, digest, want)
		}
	}
	if diff := cmp.Diff([]string{"a-x", "a/x.py"}, b.Paths()); diff != "" {
		t.Errorf("paths are not in bytewise order:\n%s", diff)
	}
}

// The largest public skill has 1,104 files: everything but hashing must stay
// small beside hashing.
func BenchmarkNew(b *testing.B) {
	for _, bb := range []struct {
		name        string
		files, size int
	}{{"17 files of 100 bytes", 17, 100}, {"1,104 files of 4 KiB", 1104, 4096}} {
		b.Run(bb.name, func(b *testing.B) {
			files := many(bb.files)
			for i := range files {
				files[i].Data = make([]byte, bb.size)
			}
			b.ReportAllocs()
			b.SetBytes(int64(bb.files * bb.size))
			for b.Loop() {
				if _, err := bundle.New(files, nil, bundle.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
