package skill

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
)

// drawBundle makes a skill of anything that one can hold.
func drawBundle(t *rapid.T) bundle.Bundle {
	elem := rapid.StringMatching(`[a-zäé日_][a-zA-Z0-9._ -]{0,5}[a-z0-9]`)
	files := map[string][]byte{markdown: []byte(goodMarkdown)}
	for range rapid.IntRange(0, 8).Draw(t, "files") {
		way := rapid.SliceOfN(elem, 1, 4).Draw(t, "path")
		files[strings.Join(way, "/")] = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
	}
	if rapid.Bool().Draw(t, "declared") {
		files[DeclarationName] = []byte("scripts: {}\n")
	}
	var list []bundle.File
	for p, data := range files {
		list = append(list, bundle.File{Path: p, Data: data})
		if _, err := bundle.New(list, nil, bundle.Limits{}); err != nil || ignored(p) {
			list = list[:len(list)-1] // a twin, or a file where a folder is
		}
	}
	b, err := bundle.New(list, files[DeclarationName], bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is exported has the same digest when it is imported, as an archive and as
// a folder, and the same skill gives the same bytes.
func TestExportImport(t *testing.T) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBundle(rt)
		var one, two bytes.Buffer
		if err := errors.Join(WriteZip(&one, b), WriteZip(&two, b)); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
			rt.Fatalf("two archives of one skill differ, or error %v", err)
		}
		files, diags, err := ReadZip(bytes.NewReader(one.Bytes()), int64(one.Len()), bundle.Limits{})
		if err != nil || len(diags) > 0 {
			rt.Fatal(err, diags)
		}
		if s, err := FromFiles(files, bundle.Limits{}); err != nil || s.Bundle.Digest() != b.Digest() {
			rt.Fatalf("from the archive: got %q, want %q, error %v", s.Bundle.Paths(), b.Paths(), err)
		}
		// Any other program reads it too.
		std, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
		if err != nil || len(std.File) != len(b.Paths()) {
			rt.Fatal(err)
		}
		for _, f := range std.File {
			r, err := f.Open()
			if err != nil {
				rt.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if text, _, ok := b.Text(f.Name); err != nil || !ok || text != string(data) || f.Mode() != 0o644 {
				rt.Fatalf("archive/zip reads %q as %q, mode %v, error %v", f.Name, data, f.Mode(), err)
			}
		}
		n++
		folder := filepath.Join(base, fmt.Sprint(n))
		if err := WriteFolder(folder, b); err != nil {
			rt.Fatal(err)
		}
		if s, err := Read(folder, bundle.Limits{}); err != nil || s.Bundle.Digest() != b.Digest() {
			rt.Fatalf("from the folder: got %q, want %q, error %v", s.Bundle.Paths(), b.Paths(), err)
		}
	})
}

// Archives that archive/zip writes are read, packed and streamed as it likes.
func TestReadZipOfStandardLibrary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBundle(rt)
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for _, f := range b.Files() {
			e, err := w.CreateHeader(&zip.FileHeader{Name: "top/" + f.Path, Method: rapid.SampledFrom([]uint16{0, 8}).Draw(rt, "method"), Modified: time.Now()})
			if err == nil {
				_, err = e.Write(f.Data)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		files, _, err := ReadZip(bytes.NewReader(buf.Bytes()), int64(buf.Len()), bundle.Limits{})
		if err != nil {
			rt.Fatal(err)
		}
		if s, err := FromFiles(files, bundle.Limits{}); err != nil || s.Bundle.Digest() != b.Digest() {
			rt.Fatalf("got %q, want %q, error %v", s.Bundle.Paths(), b.Paths(), err)
		}
	})
}

// An archive has the bytes that it had when this was written: people compare them.
func TestWriteZipIsFrozen(t *testing.T) {
	b, err := bundle.New([]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "a/ü.py", Data: []byte("print(1)\n")}}, nil, bundle.Limits{})
	must(t, err)
	var buf bytes.Buffer
	must(t, WriteZip(&buf, b))
	const want = "sha256:2ed8bc7010b4e12c65645cf9468d5cc9b6aca083ab426c423063156782f16fcf"
	if got := bundle.Sum(buf.Bytes()).String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What would come back with another digest is not written.
func TestExportRefuses(t *testing.T) {
	md := bundle.File{Path: markdown, Data: []byte(goodMarkdown)}
	for name, tt := range map[string]struct {
		files []bundle.File
		decl  string
		zip   bool // the archive alone refuses it
	}{
		"no SKILL.md":         {files: []bundle.File{{Path: "a.py"}}, decl: "scripts: {}"},
		"another declaration": {files: []bundle.File{md}, decl: "scripts: {}"},
		"version control":     {files: []bundle.File{md, {Path: "a/.git/config"}}},
		"a Mac's file":        {files: []bundle.File{md, {Path: "__MACOSX/._a"}}, zip: true},
	} {
		b, err := bundle.New(tt.files, []byte(tt.decl), bundle.Limits{})
		must(t, err)
		if err := WriteZip(io.Discard, b); !errors.Is(err, bundle.ErrContent) {
			t.Errorf("%s: archive: error %v", name, err)
		}
		folder := filepath.Join(t.TempDir(), "x")
		if err := WriteFolder(folder, b); errors.Is(err, bundle.ErrContent) == tt.zip {
			t.Errorf("%s: folder: error %v", name, err)
		}
		if _, err := os.Stat(folder); err == nil != tt.zip {
			t.Errorf("%s: the folder was made: %v", name, err)
		}
	}
	if err := WriteZip(io.Discard, bundle.Bundle{}); !errors.Is(err, bundle.ErrContent) {
		t.Errorf("nothing: error %v", err)
	}
}

func TestWriteFolder(t *testing.T) {
	b, err := bundle.New([]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "a/b.py", Data: []byte("x")}, {Path: "a/c/d.py"}}, nil, bundle.Limits{})
	must(t, err)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	must(t, os.Mkdir(at("empty"), 0o755))
	must(t, os.Mkdir(at("full"), 0o755))
	must(t, os.WriteFile(at("full/x"), []byte("mine"), 0o644))
	must(t, os.Symlink("empty2", at("link")))
	must(t, os.Mkdir(at("empty2"), 0o755))
	must(t, os.WriteFile(at("file"), nil, 0o644))
	for name, want := range map[string]string{
		"new": "", "empty": "", "full": "not empty", "link": "is a link", "file": "is a link or a file", "no/new": "no such",
	} {
		err := WriteFolder(at(name), b)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", name, err, want)
		}
		if want == "" {
			s, err := Read(at(name), bundle.Limits{})
			if err != nil || s.Bundle.Digest() != b.Digest() {
				t.Errorf("%s: got %q, error %v", name, s.Bundle.Paths(), err)
			}
			if err := WriteFolder(at(name), b); err == nil {
				t.Errorf("%s: it is written twice", name)
			}
		}
	}
	if list, err := os.ReadDir(at("empty2")); err != nil || len(list) > 0 {
		t.Errorf("something was written through a link: %v", list)
	}
	// What cannot be written whole is taken back: the last file cannot be read.
	whole, err := bundle.New([]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "a/b"}, {Path: "z/last"}}, nil, bundle.Limits{})
	must(t, err)
	must(t, os.Mkdir(at("half"), 0o755))
	for _, name := range []string{"half", "half2"} {
		if err := WriteFolder(at(name), without{whole, "z/last"}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if list, err := os.ReadDir(at("half")); err != nil || len(list) > 0 {
		t.Errorf("left: %v, error %v", list, err)
	}
	if _, err := os.Stat(at("half2")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

// A without is a content of which one file cannot be read.
type without struct {
	bundle.Content
	path string
}

func (w without) ReadFile(path string) ([]byte, error) {
	if path == w.path {
		return nil, io.ErrUnexpectedEOF
	}
	return w.Content.ReadFile(path)
}

// FromFiles says of files in memory what Read says of a folder.
func TestFromFiles(t *testing.T) {
	files := []bundle.File{
		{Path: "scripts/a.py", Data: []byte("x")}, {Path: markdown, Data: []byte(goodMarkdown)}, {Path: ".git/config"}, {Path: "a/__pycache__/x"},
		{Path: DeclarationName, Data: []byte("scripts:\n  scripts/a.py: {arguments: stdin}\n  gone.py: {}\n")},
	}
	order := slices.Clone(files)
	s, err := FromFiles(files, bundle.Limits{})
	must(t, err)
	if got := s.Bundle.Paths(); !slices.Equal(got, []string{markdown, "scripts/a.py", DeclarationName}) || s.Name != "good" || len(s.Scripts) != 1 || !s.Scripts[0].Declared {
		t.Errorf("got %+v", s)
	}
	if find(s.Diagnostics, Error, DeclarationName, "gone.py") == nil {
		t.Errorf("got %v", s.Diagnostics)
	}
	for i := range files {
		if files[i].Path != order[i].Path {
			t.Fatal("the caller's files were moved")
		}
	}
	for name, tt := range map[string]struct {
		files []bundle.File
		err   error
		text  string
	}{
		"nothing":     {nil, bundle.ErrContent, "there is no SKILL.md"},
		"other case":  {[]bundle.File{{Path: "skill.md"}}, bundle.ErrContent, "must be called"},
		"broken":      {[]bundle.File{{Path: markdown, Data: []byte("x")}}, bundle.ErrContent, "no frontmatter"},
		"no name":     {[]bundle.File{{Path: markdown, Data: []byte("---\ndescription: d\n---\n")}}, bundle.ErrContent, "name is missing"},
		"bad path":    {[]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "../x"}}, bundle.ErrPath, "../x"},
		"twins":       {[]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "a"}, {Path: "A"}}, bundle.ErrTwins, "A"},
		"over limits": {[]bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}, {Path: "a", Data: make([]byte, 9<<20)}}, bundle.ErrLimit, "a"},
	} {
		if s, err := FromFiles(tt.files, bundle.Limits{}); !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.text) || !s.Bundle.IsZero() {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
