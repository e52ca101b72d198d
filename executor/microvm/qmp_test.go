//go:build linux && amd64

package microvm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe to a QEMU that says what is in it.
type says struct {
	io.Reader
	asked bytes.Buffer
}

func (s *says) Write(p []byte) (int, error) { return s.asked.Write(p) }

const qmpGreeting = `{"QMP": {"version": {}, "capabilities": []}}` + "\n"

// M01: a monitor answers what was asked, within bounds, or nothing is believed of it.
func TestQMP(t *testing.T) {
	for _, c := range []struct {
		name, in string
		enabled  bool
		err      error // of what family; io.EOF: any
	}{
		{"an answer", qmpGreeting + `{"return": {}}` + "\n" + `{"return": {"enabled": true, "present": true}}` + "\n", true, nil},
		{"an event before it", qmpGreeting + `{"return": {}}` + "\n" + `{"event": "RESUME"}` + "\n" + `{"return": {"enabled": false}}` + "\n", false, nil},
		{"no greeting", `{"return": {}}` + "\n", false, errQMP},
		{"no JSON", "x\n", false, errQMP},
		{"nothing", "", false, io.EOF},
		{"no end", qmpGreeting + `{"return"`, false, io.EOF},
		{"another form", qmpGreeting + `{"return": {}}` + "\n" + `{"return": 3}` + "\n", false, errQMP},
		{"neither an answer nor an event", qmpGreeting + "{}\n", false, errQMP},
		{"a line without an end", qmpGreeting + strings.Repeat("x", maxLine+1), false, errQMP},
		{"events for ever", qmpGreeting + `{"return": {}}` + "\n" + strings.Repeat(`{"event": "X"}`+"\n", maxEvents+1), false, errQMP},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQMP(&says{Reader: strings.NewReader(c.in)})
			var kvm struct{ Enabled bool }
			err := q.greet()
			if err == nil {
				err = q.call("query-kvm", nil, &kvm)
			}
			if !errors.Is(err, c.err) || kvm.Enabled != c.enabled {
				t.Errorf("got %t, %v, want %t, %v", kvm.Enabled, err, c.enabled, c.err)
			}
		})
	}
	refused := newQMP(&says{Reader: strings.NewReader(qmpGreeting + `{"error": {"class": "GenericError", "desc": "no\nno"}}` + "\n")})
	if err := refused.greet(); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `no\nno`) {
		t.Errorf("a refusal: %v", err)
	}
}

func FuzzQMP(f *testing.F) {
	f.Add(qmpGreeting + `{"return": {}}` + "\n" + `{"return": {"enabled": true}}` + "\n")
	f.Fuzz(func(t *testing.T, in string) {
		s := &says{Reader: strings.NewReader(in)}
		q := newQMP(s)
		var kvm struct{ Enabled bool }
		if q.greet() == nil && q.call("query-kvm", nil, &kvm) == nil && strings.Count(s.asked.String(), "\n") != 2 {
			t.Errorf("asked %q", s.asked.String())
		}
	})
}

// A peer is at the other end of a control socket: for each line that comes it says what the
// next of its words has, and is gone behind the last. It keeps the lines, and how many
// files came with them.
type peer struct {
	asked []string
	files int
	over  chan struct{}
}

func speaks(t *testing.T, words ...string) (control, *peer) {
	t.Helper()
	ours, theirs, err := newTalk()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{over: make(chan struct{})}
	go func() {
		defer close(p.over)
		defer theirs.Close()
		for _, w := range words {
			if _, err := theirs.WriteString(w); err != nil {
				return
			}
			b, rights := make([]byte, 4096), make([]byte, 64)
			n, on, _, _, err := unix.Recvmsg(int(theirs.Fd()), b, rights, unix.MSG_CMSG_CLOEXEC)
			if err != nil || n == 0 {
				return
			}
			p.asked = append(p.asked, string(b[:n]))
			list, err := unix.ParseSocketControlMessage(rights[:on])
			if err != nil {
				return
			}
			for _, m := range list {
				fds, err := unix.ParseUnixRights(&m)
				if err != nil {
					return
				}
				for _, fd := range fds {
					p.files++
					unix.Close(fd)
				}
			}
		}
	}()
	t.Cleanup(func() {
		ours.Close()
		<-p.over
	})
	return control{f: ours}, p
}

// M01: a machine is saved or restored when the monitor says so, through the file that it is
// handed, and not when it says anything else or nothing.
func TestMigrate(t *testing.T) {
	const ok = `{"return": {}}` + "\n"
	event := func(status string) string {
		return `{"event": "MIGRATION", "data": {"status": "` + status + `"}}` + "\n"
	}
	for _, c := range []struct {
		name  string
		words []string
		bad   string // what the error says; "": none
	}{
		{"it is over", []string{qmpGreeting, ok, ok, ok, ok + event("setup") + `{"event": "STOP"}` + "\n" + event("active") + event("completed")}, ""},
		{"it was over before the answer", []string{qmpGreeting, ok, ok, ok, event("active") + event("completed") + ok}, ""},
		{"it failed", []string{qmpGreeting, ok, ok, ok, ok + event("active") + event("failed")}, "failed"},
		{"it is refused", []string{qmpGreeting, ok, ok, ok, `{"error": {"class": "GenericError", "desc": "State blocked"}}` + "\n"}, "State blocked"},
		{"the memory cannot stay", []string{qmpGreeting, ok, `{"error": {"class": "GenericError", "desc": "unknown capability"}}` + "\n"}, "unknown capability"},
		{"an answer that nobody asked for", []string{qmpGreeting, ok, ok, ok, ok + ok}, "no event"},
		{"events for ever", []string{qmpGreeting, ok, ok, ok, ok + strings.Repeat(event("active"), maxEvents+1)}, "no end"},
		{"gone", []string{qmpGreeting, ok, ok}, "EOF"},
		{"a status that is no text", []string{qmpGreeting, ok, ok, ok, ok + `{"event": "MIGRATION", "data": {"status": 3}}` + "\n"}, "never says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, err := newMemory("test", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer state.Close()
			line, p := speaks(t, c.words...)
			err = qemu{}.restore(t.Context(), &line, state)
			if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) && !(c.bad == "EOF" && isGone(err)) {
				t.Errorf("M01: got %v, want %q", err, c.bad)
			}
			line.f.Close()
			<-p.over
			if c.bad == "" && (p.files != 1 || len(p.asked) != 4 || !strings.Contains(p.asked[3], `"migrate-incoming","arguments":{"uri":"fd:state"}`)) {
				t.Errorf("it was handed %d files and asked %q", p.files, p.asked)
			}
		})
	}
}

// R22: a monitor that says nothing is waited for no longer than until the deadline.
func TestSilentMonitor(t *testing.T) {
	line, _ := speaks(t, qmpGreeting, "", "")
	state, err := newMemory("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (qemu{}).save(ctx, &line, state); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
