package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
)

// mustNew returns the bundle of files, within the default limits.
func mustNew(t testing.TB, declaration string, files ...bundle.File) bundle.Bundle {
	t.Helper()
	b, err := bundle.New(files, []byte(declaration), bundle.Limits{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return b
}

func file(path, data string) bundle.File { return bundle.File{Path: path, Data: []byte(data)} }

// The manifest and the digest are what grants pin for good (decisions.md,
// "Bytes"): these vectors are frozen. A change of them breaks every grant.
func TestManifestGolden(t *testing.T) {
	vectors := []struct {
		name        string
		declaration string
		files       []bundle.File
	}{
		{"empty", "", nil},
		{"declaration alone", "scripts:\n", nil},
		{"one empty file", "", []bundle.File{file("a", "")}},
		{"two files, given in the wrong order", "mode: argv\n", []bundle.File{file("scripts/run.py", "print(1)\n"), file("SKILL.md", "# skill\n")}},
		{"bytewise order, not that of folders", "", []bundle.File{file("a/b", "1"), file("a-b", "2"), file("a.b", "3"), file("é", "4")}},
		{"any bytes", "\x00\xff", []bundle.File{file("bin", "\x00\x01\xfe\xff\r\n")}},
	}
	var got strings.Builder
	for _, v := range vectors {
		b := mustNew(t, v.declaration, v.files...)
		fmt.Fprintf(&got, "# %s\n%x\n%s\n", v.name, b.Manifest(), b.Digest())
	}
	want, err := os.ReadFile("testdata/manifest.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the manifest is frozen; got (+), want (-):\n%s", diff)
	}
}

// The digest is the SHA-256 of the manifest, which a stranger can compute.
func TestDigestIsThatOfTheManifest(t *testing.T) {
	b := mustNew(t, "d", file("a", "1"), file("b", "2"))
	if got, want := b.Digest(), bundle.Digest(sha256.Sum256(b.Manifest())); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// parsed is what a manifest says of a bundle: everything but the bytes, of
// which it has size and digest.
type parsed struct {
	Files       []parsedFile
	Declaration string
}

type parsedFile struct {
	Path   string
	Size   uint64
	Digest string
}

// parse reads a manifest again. The declaration is the record that ends where
// the manifest ends; a file has at least 40 bytes behind its path.
func parse(m []byte) (parsed, error) {
	const domain = "tracon/bundle/1"
	rest, ok := bytes.CutPrefix(m, []byte(domain))
	if !ok {
		return parsed{}, fmt.Errorf("no domain")
	}
	var p parsed
	for {
		if len(rest) < 8 {
			return parsed{}, fmt.Errorf("%d bytes where a length stands", len(rest))
		}
		n := binary.BigEndian.Uint64(rest)
		rest = rest[8:]
		switch {
		case n == uint64(len(rest)):
			p.Declaration = string(rest)
			return p, nil
		case n+40 > uint64(len(rest)):
			return parsed{}, fmt.Errorf("a record of %d bytes, and %d are left", n, len(rest))
		}
		f := parsedFile{Path: string(rest[:n]), Size: binary.BigEndian.Uint64(rest[n:]), Digest: hex.EncodeToString(rest[n+8 : n+40])}
		p.Files = append(p.Files, f)
		rest = rest[n+40:]
	}
}

// describe says of b what its manifest must say.
func describe(b bundle.Bundle) parsed {
	p := parsed{Declaration: string(b.Declaration())}
	for _, f := range b.Files() {
		p.Files = append(p.Files, parsedFile{f.Path, uint64(len(f.Data)), bundle.Sum(f.Data).Hex()})
	}
	return p
}

// B1: a manifest can be read in one way only, so two bundles with one manifest
// are equal (up to a collision of SHA-256 in a file).
func TestManifestIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := bundle.New(anyFiles(t), anyDeclaration(t), bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		got, err := parse(b.Manifest())
		if err != nil {
			t.Fatalf("the manifest cannot be read again: %v", err)
		}
		if diff := cmp.Diff(describe(b), got); diff != "" {
			t.Errorf("the manifest says something else (-bundle +manifest):\n%s", diff)
		}
	})
}

var elements = rapid.SampledFrom([]string{"a", "b", "ab", "é", "tracon.yaml", "\U0001f600", "x-y", "0"})

func anyFiles(t *rapid.T) []bundle.File {
	paths := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(elements, 1, 3).Draw(t, "elements"), "/")
	}), 0, 6, rapid.ID[string]).Draw(t, "paths")
	files := make([]bundle.File, len(paths))
	for i, p := range paths {
		files[i] = bundle.File{Path: p, Data: rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "data")}
	}
	return files
}

func anyDeclaration(t *rapid.T) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "declaration")
}

// same says whether two trees are equal, by their bytes and not by any digest.
func same(files1 []bundle.File, d1 []byte, files2 []bundle.File, d2 []byte) bool {
	if len(files1) != len(files2) || !bytes.Equal(d1, d2) {
		return false
	}
	byPath := map[string][]byte{}
	for _, f := range files1 {
		byPath[f.Path] = f.Data
	}
	for _, f := range files2 {
		if data, ok := byPath[f.Path]; !ok || !bytes.Equal(data, f.Data) {
			return false
		}
	}
	return true
}

// B1, "Must show": no two different trees share a manifest. The second tree is
// made from the first by what an attacker would try: bytes moved between path,
// content, declaration and neighbouring files.
func TestNoTwoTreesShareAManifest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, declaration := anyFiles(t), anyDeclaration(t)
		twin := make([]bundle.File, len(files))
		for i, f := range files {
			twin[i] = bundle.File{Path: f.Path, Data: slices.Clone(f.Data)}
		}
		twinDeclaration := slices.Clone(declaration)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			twin, twinDeclaration = attack(t, twin, twinDeclaration)
		}
		one, err := bundle.New(files, declaration, bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		two, err := bundle.New(twin, twinDeclaration, bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		equal := same(files, declaration, twin, twinDeclaration)
		if got := bytes.Equal(one.Manifest(), two.Manifest()); got != equal {
			t.Errorf("trees are equal: %t, their manifests are: %t", equal, got)
		}
		if got := one.Digest() == two.Digest(); got != equal {
			t.Errorf("trees are equal: %t, their digests are: %t", equal, got)
		}
	})
}

func attack(t *rapid.T, files []bundle.File, declaration []byte) ([]bundle.File, []byte) {
	n := len(files)
	if n == 0 {
		return append(files, bundle.File{Path: "a", Data: declaration}), nil
	}
	i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, n-1).Draw(t, "j")
	switch rapid.IntRange(0, 8).Draw(t, "attack") {
	case 0: // two files change places
		files[i].Data, files[j].Data = files[j].Data, files[i].Data
	case 1: // a byte moves from the path into the content
		p := files[i].Path
		if p == "" {
			break
		}
		files[i].Path, files[i].Data = p[:len(p)-1], append([]byte{p[len(p)-1]}, files[i].Data...)
	case 2: // a byte moves from the content into the path
		if d := files[i].Data; len(d) > 0 {
			files[i].Path, files[i].Data = files[i].Path+string(d[:1]), d[1:]
		}
	case 3: // a file becomes a part of the declaration, as the manifest writes it
		b, err := bundle.New(files[i:i+1], nil, bundle.Limits{})
		if err == nil {
			record := b.Manifest()[len("tracon/bundle/1"):]
			return slices.Delete(files, i, i+1), append(record, declaration...)
		}
	case 4: // the declaration becomes a file
		return append(files, bundle.File{Path: "declaration", Data: declaration}), nil
	case 5: // content moves to the neighbour
		if i != j {
			files[j].Data = append(slices.Clone(files[i].Data), files[j].Data...)
			files[i].Data = nil
		}
	case 6: // a file's content becomes the declaration
		files[i].Data, declaration = declaration, files[i].Data
	case 7: // a file goes into a folder
		files[i].Path = "a/" + files[i].Path
	case 8: // one bit
		if d := files[i].Data; len(d) > 0 {
			files[i].Data = append([]byte{d[0] ^ 1}, d[1:]...)
		}
	}
	return files, declaration
}

// The order in which files are handed over says nothing.
func TestOrderDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := anyFiles(t)
		one, err := bundle.New(files, nil, bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		two, err := bundle.New(rapid.Permutation(files).Draw(t, "order"), nil, bundle.Limits{})
		if err != nil || one.Digest() != two.Digest() {
			t.Errorf("got %s and %s (%v), want one digest", one.Digest(), two.Digest(), err)
		}
	})
}
