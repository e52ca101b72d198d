package skill

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// A rawEntry is one entry of an archive that is written field by field, so that
// it can lie.
type rawEntry struct {
	name       string
	data       string
	method     uint16 // stored at zero
	flags      uint16
	attributes uint32
	extra      string // of the directory
	localExtra string
	streamed   int    // length of a descriptor: 12 or 16; zero: none
	gap        string // bytes behind the entry

	localName string                          // where it is another
	packed    []byte                          // where it isn't what data gives
	central   func(h []byte)                  // changes the header in the directory
	local     func(h []byte)                  // changes the header before the bytes
	at        func(offsets []uint32) uint32   // where the directory says that it is
	crc       func(crc uint32) (other uint32) // what both headers say
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed) // bombs are large
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.Bytes()
}

func rawZip(before, comment string, entries ...rawEntry) []byte {
	le := binary.LittleEndian
	out := []byte(before)
	var dir []byte
	var offsets []uint32
	for _, e := range entries {
		packed := e.packed
		if packed == nil {
			if packed = []byte(e.data); e.method == zipDeflate {
				packed = deflated(e.data)
			}
		}
		crc := crc32.ChecksumIEEE([]byte(e.data))
		if e.crc != nil {
			crc = e.crc(crc)
		}
		flags := e.flags
		if e.streamed > 0 {
			flags |= zipStreamed
		}
		localName := e.name
		if e.localName != "" {
			localName = e.localName
		}
		offsets = append(offsets, uint32(len(out)))
		l := make([]byte, zipLocalLen)
		le.PutUint32(l, zipLocal)
		le.PutUint16(l[6:], flags)
		le.PutUint16(l[8:], e.method)
		if e.streamed == 0 {
			le.PutUint32(l[14:], crc)
			le.PutUint32(l[18:], uint32(len(packed)))
			le.PutUint32(l[22:], uint32(len(e.data)))
		}
		le.PutUint16(l[26:], uint16(len(localName)))
		le.PutUint16(l[28:], uint16(len(e.localExtra)))
		if e.local != nil {
			e.local(l)
		}
		out = append(append(append(append(out, l...), localName...), e.localExtra...), packed...)
		if e.streamed == 16 {
			out = le.AppendUint32(out, zipDescriptor)
		}
		if e.streamed > 0 {
			out = le.AppendUint32(le.AppendUint32(le.AppendUint32(out, crc), uint32(len(packed))), uint32(len(e.data)))
		}
		out = append(out, e.gap...)

		c := make([]byte, zipCentralLen)
		le.PutUint32(c, zipCentral)
		le.PutUint16(c[8:], flags)
		le.PutUint16(c[10:], e.method)
		le.PutUint32(c[16:], crc)
		le.PutUint32(c[20:], uint32(len(packed)))
		le.PutUint32(c[24:], uint32(len(e.data)))
		le.PutUint16(c[28:], uint16(len(e.name)))
		le.PutUint16(c[30:], uint16(len(e.extra)))
		le.PutUint32(c[38:], e.attributes)
		at := offsets[len(offsets)-1]
		if e.at != nil {
			at = e.at(offsets)
		}
		le.PutUint32(c[42:], at)
		if e.central != nil {
			e.central(c)
		}
		dir = append(append(append(dir, c...), e.name...), e.extra...)
	}
	start := len(out)
	out = append(out, dir...)
	end := make([]byte, zipEndLen)
	le.PutUint32(end, zipEnd)
	le.PutUint16(end[8:], uint16(len(entries)))
	le.PutUint16(end[10:], uint16(len(entries)))
	le.PutUint32(end[12:], uint32(len(dir)))
	le.PutUint32(end[16:], uint32(start))
	le.PutUint16(end[20:], uint16(len(comment)))
	return append(append(out, end...), comment...)
}

func readZip(b []byte, limits bundle.Limits) (map[string]string, []Diagnostic, error) {
	files, diags, err := ReadZip(bytes.NewReader(b), int64(len(b)), limits)
	got := map[string]string{}
	for _, f := range files {
		got[f.Path] = string(f.Data)
	}
	return got, diags, err
}

func field32(at int, v uint32) func([]byte) {
	return func(h []byte) { binary.LittleEndian.PutUint32(h[at:], v) }
}

func field16(at int, v uint16) func([]byte) {
	return func(h []byte) { binary.LittleEndian.PutUint16(h[at:], v) }
}

func extraField(id int, body string) string {
	return string([]byte{byte(id), byte(id >> 8), byte(len(body)), byte(len(body) >> 8)}) + body
}

const regular, link = 0o100644 << 16, 0o120777 << 16

var goodEntry = rawEntry{name: "SKILL.md", data: goodMarkdown}

// Archives as common programs write them are read.
func TestReadZip(t *testing.T) {
	two := map[string]string{"SKILL.md": goodMarkdown, "scripts/a.py": "print(1)"}
	zeros := strings.Repeat("0", 100_000)
	tests := []struct {
		name string
		in   []byte
		want map[string]string
		note string // the code of a diagnostic
	}{
		{"stored", rawZip("", "", goodEntry, rawEntry{name: "scripts/a.py", data: "print(1)"}), two, ""},
		{"deflated", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, method: 8}, rawEntry{name: "z", data: zeros, method: 8}),
			map[string]string{"SKILL.md": goodMarkdown, "z": zeros}, ""},
		{"a comment", rawZip("", "0123456789abcdef", goodEntry, rawEntry{name: "scripts/a.py", data: "print(1)"}), two, ""},
		{"streamed", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, method: 8, streamed: 16}, rawEntry{name: "scripts/a.py", data: "print(1)", method: 8, streamed: 12}), two, ""},
		{"with folders and modes", rawZip("", "", rawEntry{name: "scripts/", attributes: 0o40755<<16 | 0x10},
			rawEntry{name: "SKILL.md", data: goodMarkdown, attributes: regular}, rawEntry{name: "scripts/a.py", data: "print(1)", attributes: 0o100000 << 16}, rawEntry{name: "empty/"}), two, ""},
		{"one folder", rawZip("", "", rawEntry{name: "good/"}, rawEntry{name: "good/SKILL.md", data: goodMarkdown}, rawEntry{name: "good/scripts/a.py", data: "print(1)"}), two, "archive-folder"},
		{"one folder and a Mac", rawZip("", "", rawEntry{name: "good/SKILL.md", data: goodMarkdown}, rawEntry{name: "__MACOSX/good/._SKILL.md", data: "x"}, rawEntry{name: "__MACOSX/"},
			rawEntry{name: "good/.DS_Store", data: "x"}, rawEntry{name: "good/scripts/a.py", data: "print(1)"}, rawEntry{name: "good/scripts/__pycache__/a.pyc", data: "x"}, rawEntry{name: "good/.git/config", data: "x"}), two, "archive-folder"},
		{"backslashes", rawZip("", "", rawEntry{name: `good\`, attributes: 0x10}, rawEntry{name: `good\SKILL.md`, data: goodMarkdown}, rawEntry{name: `good\scripts\a.py`, data: "print(1)"}), two, "archive-backslash"},
		{"an empty file", rawZip("", "", goodEntry, rawEntry{name: "scripts/__init__.py", method: 8}), map[string]string{"SKILL.md": goodMarkdown, "scripts/__init__.py": ""}, ""},
		{"extra fields", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, extra: extraField(0x5455, "\x01abcd"), localExtra: extraField(0x5455, "\x03abcdefgh")},
			rawEntry{name: "scripts/a.py", data: "print(1)", extra: extraField(zipExtraName, "\x01abcdscripts/a.py")}), two, ""},
		{"names of other letters", rawZip("", "", goodEntry, rawEntry{name: "Größe/日本.md", data: "x", flags: 1 << 11}, rawEntry{name: "é", data: "y"}),
			map[string]string{"SKILL.md": goodMarkdown, "Größe/日本.md": "x", "é": "y"}, ""},
		{"a folder of that name is no Mac's", rawZip("", "", goodEntry, rawEntry{name: "__MACOSX/a", data: "x"}), map[string]string{"SKILL.md": goodMarkdown, "__MACOSX/a": "x"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, diags, err := readZip(tt.in, bundle.Limits{})
			if err != nil || !maps.Equal(got, tt.want) {
				t.Fatalf("got %q, error %v; want %q", got, err, tt.want)
			}
			if tt.note == "" && len(diags) > 0 || tt.note != "" && !slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.Code == tt.note && d.Severity == Note }) {
				t.Errorf("got %v, want %q", diags, tt.note)
			}
		})
	}
}

// B01–B07: an archive is refused whole, before anything is unpacked, with the
// entry and the reason.
func TestReadZipRefuses(t *testing.T) {
	with := func(e rawEntry) []byte { return rawZip("", "", goodEntry, e) }
	named := func(name string) []byte { return with(rawEntry{name: name, data: "x"}) }
	twice := func(a, b string) []byte {
		return rawZip("", "", goodEntry, rawEntry{name: a, data: "x"}, rawEntry{name: b, data: "y"})
	}
	bomb := strings.Repeat("\x00", 20<<20)
	good := rawZip("", "", goodEntry)
	type refusal struct {
		name string
		in   []byte
		err  error
		text string
	}
	tests := []refusal{
		{"B01 leaves the folder", named("../x"), bundle.ErrPath, `entry "../x"`},
		{"B01 leaves it inside", named("a/../../x"), bundle.ErrPath, `entry "a/../../x"`},
		{"B01 leaves by backslash", named(`..\x`), bundle.ErrPath, `entry "..\x"`},
		{"B01 absolute", named("/etc/passwd"), bundle.ErrPath, `entry "/etc/passwd"`},
		{"B01 absolute by backslash", named(`\x`), bundle.ErrPath, `entry "\x"`},
		{"B01 UNC", named(`\\host\x`), bundle.ErrPath, "entry"},
		{"B01 drive", named(`C:\x`), bundle.ErrPath, "entry"},
		{"B01 drive without a slash", named(`C:x`), bundle.ErrPath, "entry"},
		{"B01 dot", named("./x"), bundle.ErrPath, `entry "./x"`},
		{"B01 dot alone", named("."), bundle.ErrPath, `entry "."`},
		{"B01 empty name", named(""), bundle.ErrPath, "it is empty"},
		{"B01 slash alone", named("/"), bundle.ErrPath, `entry "/"`},
		{"B01 two slashes", named("a//x"), bundle.ErrPath, `entry "a//x"`},
		{"B01 a bad folder", rawZip("", "", goodEntry, rawEntry{name: "../a/"}), bundle.ErrPath, `entry "../a/"`},
		{"B01 in what is left out", named(".git/../../x"), bundle.ErrPath, "entry"},
		{"B02 link", with(rawEntry{name: "a", data: "/etc/passwd", attributes: link}), ErrArchive, `entry "a": it is a link`},
		{"B02 link from a system without", with(rawEntry{name: "a", data: "/", attributes: link, central: field16(4, 20)}), ErrArchive, "it is a link"},
		{"B02 link in what is left out", with(rawEntry{name: ".git/a", data: "/", attributes: link}), ErrArchive, "it is a link"},
		{"B02 Windows' link", with(rawEntry{name: "a", data: "/", attributes: dosReparse}), ErrArchive, "it is a link"},
		{"B02 device", with(rawEntry{name: "a", attributes: 0o060644 << 16}), ErrArchive, "neither a file nor a folder"},
		{"B02 fifo", with(rawEntry{name: "a", attributes: 0o010644 << 16}), ErrArchive, "neither a file nor a folder"},
		{"B02 socket", with(rawEntry{name: "a", attributes: 0o140644 << 16}), ErrArchive, "neither a file nor a folder"},
		{"B02 link, then a file through it", rawZip("", "", goodEntry, rawEntry{name: "a", data: "/tmp", attributes: link}, rawEntry{name: "a/b", data: "x"}), ErrArchive, "it is a link"},
		{"a file and a folder", twice("a", "a/b"), bundle.ErrTwins, `"a"`},
		{"a file and an empty folder", rawZip("", "", goodEntry, rawEntry{name: "a", data: "x"}, rawEntry{name: "a/"}), bundle.ErrPath, "stands twice"},
		{"a folder with content", with(rawEntry{name: "a/", data: "x"}), ErrArchive, "is a folder and has content"},
		{"a folder by its mode", with(rawEntry{name: "a", attributes: 0o040755 << 16}), ErrArchive, "disagree"},
		{"a folder by its attribute", with(rawEntry{name: "a", attributes: dosFolder}), ErrArchive, "disagree"},
		{"a file by its mode", with(rawEntry{name: "a/", attributes: regular}), ErrArchive, "disagree"},
		{"B03 bomb", with(rawEntry{name: "a", data: bomb, method: 8}), bundle.ErrLimit, `entry "a": it has 20971520 bytes, at most 8388608`},
		{"B03 bomb that says little", with(rawEntry{name: "a", data: bomb[:100], method: 8, packed: deflated(bomb)}), ErrArchive, "unpacks to more than the 100 bytes"},
		{"B03 bomb that says the impossible", with(rawEntry{name: "a", data: bomb[:7<<20], method: 8, packed: deflated("")}), ErrArchive, "which is impossible"},
		{"B03 many bombs", rawZip("", "", goodEntry, rawEntry{name: "a", data: bomb[:8<<20], method: 8}, rawEntry{name: "b", data: bomb[:8<<20], method: 8},
			rawEntry{name: "c", data: bomb[:8<<20], method: 8}, rawEntry{name: "d", data: bomb[:8<<20], method: 8}), bundle.ErrLimit, `entry "d": with it the skill has more than 33554432 bytes`},
		{"B03 overlap", rawZip("", "", goodEntry, rawEntry{name: "a", data: "x"}, rawEntry{name: "b", data: "x", at: func(o []uint32) uint32 { return o[1] }}), ErrArchive, "overlaps"},
		{"B03 overlap in the bytes", rawZip("", "", goodEntry, rawEntry{name: "a", data: "abc", local: field32(18, 30), central: field32(20, 30)}), ErrArchive, "two sizes"},
		{"B03 deflated over the next", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, method: 8, local: field32(18, 90), central: field32(20, 90)}, rawEntry{name: "a", data: strings.Repeat("x", 99)}), ErrArchive, "overlaps"},
		{"B04 the same name", twice("a", "a"), bundle.ErrPath, `entry "a": it stands twice`},
		{"B04 the same name by backslash", twice("a/b", `a\b`), bundle.ErrPath, "stands twice"},
		{"B04 another local name", with(rawEntry{name: "a", localName: "b", data: "x"}), ErrArchive, "two different things"},
		{"B04 a longer local name", with(rawEntry{name: "a", localName: "ab", data: "x"}), ErrArchive, "two different things"},
		{"B04 another local size", with(rawEntry{name: "a", data: "x", local: field32(22, 9)}), ErrArchive, "two different things"},
		{"B04 another local checksum", with(rawEntry{name: "a", data: "x", local: field32(14, 9)}), ErrArchive, "two different things"},
		{"B04 another local method", with(rawEntry{name: "a", data: "x", local: field16(8, 8)}), ErrArchive, "two different things"},
		{"B04 other local flags", with(rawEntry{name: "a", data: "x", local: field16(6, zipStreamed)}), ErrArchive, "two different things"},
		{"B04 another descriptor", with(rawEntry{name: "a", data: "x", streamed: 12, central: field32(16, 9)}), ErrArchive, "two different things"},
		{"B04 a descriptor without its mark", with(rawEntry{name: "a", data: "x", streamed: 12, gap: "abcd"}), ErrArchive, "belong to no entry"},
		{"B04 bytes before", rawZip("#!/bin/sh\n", "", goodEntry), ErrArchive, "belong to none"},
		{"B04 bytes before that are not counted", append([]byte("#!/bin/sh\n"), good...), ErrArchive, "bytes before its entries"},
		{"B04 bytes between", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, gap: "x"}, rawEntry{name: "a"}), ErrArchive, "belong to no entry"},
		{"B04 bytes before the list", rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, gap: "x"}), ErrArchive, "belong to no entry"},
		{"B04 bytes behind", append(bytes.Clone(good), 'x'), ErrArchive, "bytes behind its end"},
		{"B04 two ends", append(bytes.Clone(good), good...), ErrArchive, "bytes before its entries"},
		{"B04 an end in the comment", rawZip("", string(good), goodEntry), ErrArchive, "two ends"},
		{"B04 a part of an end in the comment", rawZip("", "PK\x05\x06 and more than twenty-two bytes", goodEntry), ErrArchive, "two ends"},
		{"B04 a second name", with(rawEntry{name: "a", data: "x", extra: extraField(zipExtraName, "\x01abcdb")}), ErrArchive, "a second name"},
		{"B04 a second local name", with(rawEntry{name: "a", data: "x", localExtra: extraField(zipExtraName, "\x01abcdb")}), ErrArchive, "a second name"},
		{"B04 zip64", with(rawEntry{name: "a", data: "x", extra: extraField(zipExtra64, "12345678")}), ErrArchive, "zip64"},
		{"B04 zip64 by size", with(rawEntry{name: "a", data: "x", central: field32(24, 0xFFFFFFFF)}), ErrArchive, "zip64"},
		{"B04 bad extra field", with(rawEntry{name: "a", data: "x", extra: "\x55\x54\xff\x00x"}), ErrArchive, "extra fields"},
		{"B04 another disk", with(rawEntry{name: "a", data: "x", central: field16(34, 1)}), ErrArchive, "another part"},
		{"B04 no local header", with(rawEntry{name: "a", data: "x", local: field32(0, zipCentral)}), ErrArchive, "not where the archive says"},
		{"B05 case", twice("a.py", "A.py"), bundle.ErrTwins, `"A.py"`},
		{"B05 case of a folder", twice("a/x", "A/y"), bundle.ErrTwins, `"A/"`},
		{"B05 normal form", twice("caf\u00e9", "cafe\u0301"), bundle.ErrTwins, "caf"},
		{"B05 dot at the end", named("a."), bundle.ErrPath, `"a."`},
		{"B05 blank at the end", named("a /x"), bundle.ErrPath, `"a "`},
		{"B06 device", named("a/NUL.txt"), bundle.ErrPath, "device"},
		{"B06 stream", named("a:b"), bundle.ErrPath, "entry"},
		{"B06 long name", named("a/" + strings.Repeat("x", 256)), bundle.ErrPath, "256 bytes between two slashes"},
		{"B06 long path", named(strings.Repeat("x/", 256) + "x"), bundle.ErrLimit, "its path has 513 bytes"},
		{"B06 deep", named(strings.Repeat("a/", 1000) + "x"), bundle.ErrLimit, "at most"},
		{"B07 NUL", named("a.py\x00.txt"), bundle.ErrPath, "entry"},
		{"B07 line feed", named("a\nb"), bundle.ErrPath, "entry"},
		{"B07 direction", named("a\u202eb"), bundle.ErrPath, "entry"},
		{"B07 not UTF-8, and long", named(strings.Repeat("\x80", 99)), bundle.ErrPath, "not UTF-8"},
		{"B07 not UTF-8", named("a\xff"), bundle.ErrPath, "not UTF-8"},
		{"encrypted", with(rawEntry{name: "a", data: "x", flags: 1}), ErrArchive, "is encrypted"},
		{"another method", with(rawEntry{name: "a", data: "x", method: 12}), ErrArchive, "method 12"},
		{"wrong checksum", with(rawEntry{name: "a", data: "x", crc: func(c uint32) uint32 { return c + 1 }}), ErrArchive, "checksum"},
		{"not deflate", with(rawEntry{name: "a", data: "xyz", method: 8, packed: []byte("\xff\xff\xff")}), ErrArchive, "cannot be unpacked"},
		{"deflate that ends early", with(rawEntry{name: "a", data: goodMarkdown, method: 8, packed: deflated(goodMarkdown)[:9]}), ErrArchive, "cannot be unpacked"},
		{"bytes behind deflate", with(rawEntry{name: "a", data: "xyz", method: 8, packed: append(deflated("xyz"), 'x')}), ErrArchive, "bytes behind its content"},
		{"less than it says", with(rawEntry{name: "a", data: "xyz", method: 8, packed: deflated("xy")}), ErrArchive, "after 2 of 3 bytes"},
		{"nothing", nil, ErrArchive, "no zip archive"},
		{"a text", []byte(strings.Repeat("no archive ", 10)), ErrArchive, "no zip archive"},
		{"no entries", rawZip("", ""), ErrArchive, "there is no SKILL.md"},
		{"no SKILL.md", rawZip("", "", rawEntry{name: "a.py"}), ErrArchive, "there is no SKILL.md"},
		{"two skills", rawZip("", "", rawEntry{name: "a/SKILL.md", data: goodMarkdown}, rawEntry{name: "b/SKILL.md", data: goodMarkdown}), ErrArchive, `not at its top but at "a/SKILL.md"`},
		{"a skill two folders below", rawZip("", "", rawEntry{name: "a/b/SKILL.md", data: goodMarkdown}), ErrArchive, `pack the folder "b" alone`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := readZip(tt.in, bundle.Limits{})
			var e *ArchiveError
			if !errors.As(err, &e) || !errors.Is(err, tt.err) || !errors.Is(err, bundle.ErrContent) || len(got) > 0 {
				t.Fatalf("got %q, error %v; want %v", got, err, tt.err)
			}
			if s := err.Error(); !strings.Contains(s, visible(tt.text)) || strings.ContainsFunc(s, hidden) || len(s) > 1500 {
				t.Errorf("got error %q, want %q", s, tt.text)
			}
		})
	}
	for n := range len(good) {
		if got, _, err := readZip(good[:n], bundle.Limits{}); !errors.Is(err, bundle.ErrContent) || len(got) > 0 {
			t.Errorf("cut off after %d bytes: error %v", n, err)
		}
	}
}

// B03: what an archive states is refused without unpacking, and what it hides
// costs no more than it states. An archive with more entries than a skill can
// have is left at their number.
func TestReadZipIsBounded(t *testing.T) {
	bomb := deflated(strings.Repeat("\x00", 64<<20))
	many := make([]rawEntry, 60_000)
	for i := range many {
		many[i].name = fmt.Sprint(i)
	}
	for name, in := range map[string][]byte{
		"says little":  rawZip("", "", rawEntry{name: "SKILL.md", data: "x", method: 8, packed: bomb}),
		"many entries": rawZip("", "", many...),
		"a long list":  rawZip("", "", rawEntry{name: "SKILL.md", extra: strings.Repeat(extraField(1, ""), 16_000), localExtra: strings.Repeat(extraField(1, ""), 16_000)}),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := readZip(in, bundle.Limits{})
			runtime.ReadMemStats(&after)
			if mem := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, bundle.ErrContent) || mem > 1<<20 {
				t.Errorf("took %d bytes, error %v", mem, err)
			}
		})
	}
	small := bundle.Limits{FileBytes: 200, TotalBytes: 300, Files: 3, Depth: 2, PathBytes: 20}
	text := strings.Repeat("x", 120)
	for name, e := range map[string][]rawEntry{
		"more than 200":  {{name: "a", data: strings.Repeat("x", 201)}},
		"200":            {{name: "a", data: text}, {name: "b", data: text}, {name: "c", data: text}},
		"3":              {{name: "a"}, {name: "b"}, {name: "c"}},
		"at most 2":      {{name: "a/b/c"}},
		"20":             {{name: strings.Repeat("a", 21)}},
		"at most 200":    {{name: "a", data: strings.Repeat("x", 201)}},
		"than 300 bytes": {{name: "a", data: text}, {name: "b", data: text + text[:60]}},
	} {
		if _, _, err := readZip(rawZip("", "", append([]rawEntry{goodEntry}, e...)...), small); !errors.Is(err, bundle.ErrLimit) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A fault of the medium is no fault of the archive.
func TestReadZipMedium(t *testing.T) {
	in := rawZip("", "", rawEntry{name: "SKILL.md", data: goodMarkdown, method: 8})
	broken := errors.New("broken")
	for n := range 6 {
		_, _, err := ReadZip(&failingReader{bytes.NewReader(in), n, broken}, int64(len(in)), bundle.Limits{})
		if n < 5 && (!errors.Is(err, broken) || errors.Is(err, bundle.ErrContent)) {
			t.Errorf("read %d fails: error %v", n, err)
		}
	}
	if _, _, err := ReadZip(bytes.NewReader(in), int64(len(in))+100, bundle.Limits{}); !errors.Is(err, ErrArchive) {
		t.Errorf("shorter than told: error %v", err)
	}
}

type failingReader struct {
	r    io.ReaderAt
	left int
	err  error
}

func (f *failingReader) ReadAt(b []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.r.ReadAt(b, at)
}
