//go:build linux && amd64

package microvm

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
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
