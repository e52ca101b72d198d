package skill

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

func FuzzReadZip(f *testing.F) {
	f.Add(rawZip("", "", goodEntry, rawEntry{name: `a\b`, data: "x", attributes: regular}))
	f.Add(rawZip("", "c", rawEntry{name: "t/SKILL.md", data: goodMarkdown, method: 8, streamed: 16}, rawEntry{name: "t/", attributes: 0x10}))
	f.Add(rawZip("", "", goodEntry, rawEntry{name: "é", data: "xx", method: 8, streamed: 12, extra: extraField(0x5455, "\x01abcd")}))
	f.Add(rawZip("", "", goodEntry, rawEntry{name: "__MACOSX/._a", data: "x"}, rawEntry{name: ".git/a"}))
	f.Fuzz(checkZip)
}

// FuzzReadZipEntry changes what an entry says and keeps the archive's form, which
// single bytes rarely hit.
func FuzzReadZipEntry(f *testing.F) {
	f.Add("SKILL.md", "a.py", []byte("x"), []byte(nil), uint16(0), uint16(0), uint32(regular), "", "", uint8(0))
	f.Add("t/SKILL.md", `t\a.py`, []byte("xx"), []byte("\x4b\x04\x00"), uint16(8), uint16(1<<11), uint32(0), "\x55\x54\x01\x00a", "comment", uint8(16))
	f.Fuzz(func(t *testing.T, first, second string, data, packed []byte, method, flags uint16, attributes uint32, extra, comment string, streamed uint8) {
		if len(first)+len(second)+len(extra)+len(comment) > 1<<15 {
			return
		}
		e := rawEntry{name: second, data: string(data), method: method, flags: flags, attributes: attributes, extra: extra, localExtra: extra, packed: packed}
		if streamed == 12 || streamed == 16 {
			e.streamed = int(streamed)
		}
		checkZip(t, rawZip("", comment, rawEntry{name: first, data: goodMarkdown}, e))
	})
}

func checkZip(t *testing.T, b []byte) {
	limits := bundle.Limits{FileBytes: 1 << 16, TotalBytes: 1 << 17, Files: 64}
	files, diags, err := ReadZip(bytes.NewReader(b), int64(len(b)), limits)
	whole, wholeErr := wholeZip(b, limits)
	sameInto(t, whole, wholeErr, func(k Keeper) (Outline, bundle.Content, error) {
		return ReadZipInto(bytes.NewReader(b), int64(len(b)), limits, k)
	})
	if err != nil {
		if !errors.Is(err, bundle.ErrContent) || len(files) > 0 || strings.ContainsFunc(err.Error(), hidden) || len(err.Error()) > 3000 {
			t.Fatalf("%d files, error %q", len(files), err)
		}
		return
	}
	for _, d := range diags {
		if d.Severity != Note || strings.ContainsFunc(d.String(), hidden) {
			t.Fatalf("diagnostic %q", d)
		}
	}
	// What we read, the standard library reads in the same way.
	std, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("archive/zip reads it not: %v", err)
	}
	contents := map[string]int{}
	for _, e := range std.File {
		r, err := e.Open()
		if err != nil {
			t.Fatalf("archive/zip: %q: %v", e.Name, err)
		}
		data, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil && !ignored(strings.ReplaceAll(e.Name, `\`, "/")) && !strings.HasPrefix(e.Name, "__MACOSX") && !strings.HasSuffix(e.Name, "/") && !strings.HasSuffix(e.Name, `\`) {
			t.Fatalf("archive/zip: %q: %v", e.Name, err)
		}
		contents[string(data)]++
	}
	for _, one := range files {
		if contents[string(one.Data)]--; contents[string(one.Data)] < 0 {
			t.Fatalf("archive/zip has no entry like %q", one.Path)
		}
	}
	made, err := bundle.New(files, nil, limits)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := FromFiles(files, limits); err == nil {
		var out bytes.Buffer
		if err := WriteZip(&out, s.Bundle); err != nil {
			return // it holds a file that is left out
		}
		again, _, err := ReadZip(bytes.NewReader(out.Bytes()), int64(out.Len()), limits)
		if err != nil {
			t.Fatal(err)
		}
		if s2, err := bundle.New(again, nil, limits); err != nil || s2.Digest() != made.Digest() {
			t.Fatalf("exported and imported: %v, error %v", s2.Paths(), err)
		}
	}
}

// Importing 2,000 files: from the archive to the digest and the scripts.
func BenchmarkImport(b *testing.B) {
	var md [2]bytes.Buffer
	w := zip.NewWriter(&md[0])
	files := []bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}}
	for i := range 1999 {
		files = append(files, bundle.File{Path: fmt.Sprintf("d%d/f%d.py", i%50, i), Data: []byte(strings.Repeat(fmt.Sprint("line ", i, "\n"), 200))})
	}
	for _, f := range files {
		e, err := w.Create(f.Path)
		must(b, err)
		_, err = e.Write(f.Data)
		must(b, err)
	}
	must(b, w.Close())
	all, err := bundle.New(files, nil, bundle.Limits{})
	must(b, err)
	must(b, WriteZip(&md[1], all))
	for i, name := range []string{"packed", "stored"} {
		b.Run(name, func(b *testing.B) {
			in := md[i].Bytes()
			b.ReportAllocs()
			for b.Loop() {
				files, _, err := ReadZip(bytes.NewReader(in), int64(len(in)), bundle.Limits{})
				must(b, err)
				s, err := FromFiles(files, bundle.Limits{})
				if err != nil || s.Bundle.Digest() != all.Digest() {
					b.Fatal(err)
				}
			}
		})
	}
}
