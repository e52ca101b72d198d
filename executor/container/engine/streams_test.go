//go:build linux && (amd64 || arm64)

package engine

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(stream byte, text string) string {
	return string([]byte{stream, 0, 0, 0, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
}

// What an engine sends is read strictly: two streams, in parts of any size (R19).
func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		name, sent  string
		out, errors string
		bad         bool
	}{
		{"nothing", "", "", "", false},
		{"both", frame(1, "a") + frame(2, "b") + frame(1, "") + frame(1, "c"), "ac", "b", false},
		{"another stream", frame(1, "a") + frame(3, "b"), "a", "", true},
		{"its input", frame(0, "a"), "", "", true},
		{"no zeros", "\x01\x01\x00\x00\x00\x00\x00\x01a", "", "", true},
		{"an early end", frame(1, "abc")[:9], "a", "", true},
		{"a broken head", frame(1, "a") + "\x01\x00", "a", "", true},
		{"a terminal's", "hello, world", "", "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{"whole": strings.NewReader(tc.sent), "by bytes": iotest.OneByteReader(strings.NewReader(tc.sent))} {
				var stdout, stderr bytes.Buffer
				err := split(r, &stdout, &stderr)
				if stdout.String() != tc.out || stderr.String() != tc.errors || (err != nil) != tc.bad {
					t.Errorf("%s: got %q, %q, %v", name, &stdout, &stderr, err)
				}
			}
		})
	}
}

// The script's bytes are those before the mark, wherever parts end; what comes before it
// was started and behind the mark is its first process's.
func TestSorter(t *testing.T) {
	const mark = "MARKMARK!"
	for _, tc := range []struct{ name, script, after string }{
		{"plain", "hello", "answer"},
		{"nothing", "", ""},
		{"like the mark", "MARKMARK?MARKMARKMARK", "MARKMARK!"},
		{"its beginning", "xMARK", "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := tc.script + mark + tc.after
			for size := 1; size <= len(all); size++ {
				var script, told bytes.Buffer
				s := &sorter{mark: []byte(mark), script: &script, told: &told, ended: make(chan struct{})}
				_, _ = s.Write([]byte("before"))
				s.begin()
				for rest := all; rest != ""; rest = rest[min(size, len(rest)):] {
					if _, err := s.Write([]byte(rest[:min(size, len(rest))])); err != nil {
						t.Fatal(err)
					}
				}
				if script.String() != tc.script || told.String() != "before"+tc.after {
					t.Fatalf("in parts of %d: got %q, %q", size, &script, &told)
				}
				<-s.ended
			}
		})
	}
	var script bytes.Buffer
	s := &sorter{mark: []byte(mark), script: &script, ended: make(chan struct{})}
	if _, err := s.Write([]byte("x")); !errors.Is(err, errTalk) {
		t.Errorf("a word where there can be none: %v", err)
	}
	s.begin()
	_, _ = s.Write([]byte("cut MARK"))
	s.flush()
	if script.String() != "cut MARK" {
		t.Errorf("what ends early is %q", &script)
	}
}

// What nobody asked for is bounded (B10).
func TestInbox(t *testing.T) {
	b := newInbox()
	if _, err := b.Write(make([]byte, mostTold)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write([]byte{1}); !errors.Is(err, errTalk) {
		t.Errorf("more than that: %v", err)
	}
	b.end(io.ErrUnexpectedEOF)
	if got, err := io.ReadAll(b); len(got) != mostTold || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// An engine's progress ends well only when it says nothing of an error.
func TestReadProgress(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		bad        bool
	}{
		{"well", `{"status":"sha256:1"}` + "\n" + `{"status":"done"}`, false},
		{"an error", `{"status":"x"}{"error":"no space left on device","errorDetail":{"message":"no space left on device"}}`, true},
		{"a detail alone", `{"errorDetail":{"message":"no"}}`, true},
		{"nonsense", `<html>`, true},
		{"an early end", `{"status":`, true},
	} {
		if err := readProgress(strings.NewReader(tc.text)); (err != nil) != tc.bad {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(frame(1, "a") + frame(2, "b")))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var stdout, stderr bytes.Buffer
		if err := split(bytes.NewReader(b), &stdout, &stderr); err == nil && len(b) > 0 && stdout.Len()+stderr.Len()+8 > len(b) {
			t.Errorf("%d bytes came of %d", stdout.Len()+stderr.Len(), len(b))
		}
	})
}

func FuzzDirents(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x08name\x00"))
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x08a/b\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, ok := dirents(b)
		for _, e := range list {
			if ok && (e.name == "" || strings.ContainsAny(e.name, "/\x00") || e.name == "." || e.name == "..") {
				t.Errorf("the name %q", e.name)
			}
		}
	})
}
