package fleet

import (
	"testing"
	"time"
)

// W03, B9: a link that is not let in is tried ever less often and not in step with others,
// and so often still that runs outlive a server that was started again.
func TestWaits(t *testing.T) {
	for _, tt := range []struct {
		rounds int
		most   time.Duration
	}{{0, again}, {1, again}, {2, 2 * again}, {3, 4 * again}, {4, 8 * again}, {5, lastAgain}, {60, lastAgain}, {1 << 40, lastAgain}} {
		least, most := lastAgain, time.Duration(0)
		for range 1000 {
			w := waits(tt.rounds)
			least, most = min(least, w), max(most, w)
		}
		if least <= tt.most/2-1 || most > tt.most || least == most {
			t.Errorf("after %d rounds a link waits from %v to %v, want from %v to %v", tt.rounds, least, most, tt.most/2, tt.most)
		}
	}
	if lastAgain > DefaultLost/4 {
		t.Errorf("a link waits for up to %v, and whoever is silent for %v is given up", lastAgain, DefaultLost)
	}
}
