package runnerapi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// R21, B10: ids are remembered for a quarter of an hour, and so many; a peer that fills
// its half takes nothing from another's.
func TestStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarted(4)
		if !s.add("one", "x") || s.add("one", "x") || !s.add("two", "x") {
			t.Error("R21: an id is taken twice, or another peer's is not")
		}
		for i := range 9 {
			if !s.add("two", fmt.Sprint(i)) {
				t.Errorf("%d is not new", i)
			}
		}
		if len(s.at) != 3 || s.came.Len() != 3 || s.of["two"] != 2 || s.add("one", "x") || s.add("two", "8") {
			t.Errorf("B10: %d are remembered, %v", len(s.at), s.of)
		}
		s.forget("one", "x")
		if !s.add("one", "x") {
			t.Error("what was not started may not come again")
		}
		time.Sleep(startedFor + time.Second)
		if !s.add("one", "y") || len(s.at) != 1 || len(s.of) != 1 {
			t.Errorf("after their time %d are remembered", len(s.at))
		}
	})
}
