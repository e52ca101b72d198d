package client

import (
	"errors"
	"strings"
	"testing"
)

// Server-sent events are read as they are written: comments, events of kinds that are
// not known, and fields that are not, are passed over.
func TestReadEvents(t *testing.T) {
	const stream = ":\n\nid: 1\nevent: started\ndata: {}\n\nretry: 5\nid: 2\nevent: output\ndata: {\"stream\":\"stderr\",\"text\":\"a\\n\"}\n\n" +
		"id: 3\nevent: later\ndata: [1]\n\nid: 4\nevent: gap\ndata: {\"bytes\":7,\"more\":1}\n\n:\n\nid: 5\nevent: end\ndata: {\"id\":\"r\",\"exitCode\":3}\n\n"
	var got []RunEvent
	for e, err := range readEvents(strings.NewReader(stream)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if len(got) != 4 || got[0].Kind != EventStarted || got[1].Output != (EventText{"stderr", "a\n"}) || got[1].Seq != 2 ||
		got[2].Lost.Bytes != 7 || got[3].Run.ID != "r" || *got[3].Run.ExitCode != 3 || got[3].Seq != 5 {
		t.Errorf("read %+v", got)
	}
}

// What cannot be read is an error that says so, and ends it.
func TestReadEventsFails(t *testing.T) {
	for name, stream := range map[string]string{
		"no number":       "id: x\nevent: started\ndata: {}\n\n",
		"no JSON":         "id: 1\nevent: output\ndata: {\n\n",
		"another type":    "id: 1\nevent: end\ndata: []\n\n",
		"a line too long": "data: " + strings.Repeat("x", maxEvent+1),
	} {
		n := 0
		for _, err := range readEvents(strings.NewReader(stream + "id: 1\nevent: started\ndata: {}\n\n")) {
			if n++; !errors.Is(err, ErrEvents) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d events, want the error alone", name, n)
		}
	}
}

// Whatever a server sends, the reader ends, and what it yields has a kind that it knows.
func FuzzReadEvents(f *testing.F) {
	for _, s := range []string{"", ":\n\n", "id: 1\nevent: started\ndata: {}\n\n", "id:1\nevent:end\ndata:{\"id\":\"a\"}\n\n", "data\n\n", "id: 18446744073709551616\nevent: gap\ndata: {}\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		failed := false
		for e, err := range readEvents(strings.NewReader(s)) {
			if failed {
				t.Fatal("it goes on behind an error")
			}
			if failed = err != nil; failed {
				continue
			}
			switch e.Kind {
			case EventStarted, EventOutput, EventGap, EventEnd:
			default:
				t.Errorf("%q: %+v", s, e)
			}
		}
	})
}
