//go:build unix

package box

import (
	"testing"
	"time"
)

// Case 22: what a script wrote is kept, also when its reader comes too late: a
// deadline that has passed hides no output.
func TestNothingIsLostAtTheDeadline(t *testing.T) {
	s, err := NewStreams(1<<20, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stdout, _ := s.Writers()
	if _, err := stdout.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.read { // as if Finish had come before any reader ran
		if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	got, _, truncated := s.Finish(-time.Second)
	if string(got) != "late" || truncated {
		t.Errorf("got %q, truncated %v; want what is in the pipe", got, truncated)
	}
}
