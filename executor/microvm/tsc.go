//go:build linux && amd64

package microvm

import "time"

// rdtsc reads the processor's counter, which machines have for their clock.
func rdtsc() uint64

// counterTime is over how long the counter is measured.
const counterTime = 100 * time.Millisecond

// counterRate returns how many thousands the processor's counter counts in a second.
func counterRate() int {
	begin, first := readBoth()
	time.Sleep(counterTime)
	end, last := readBoth()
	return int(float64(last-first) / end.Sub(begin).Seconds() / 1000)
}

// readBoth reads the clock and the counter, as close together as it can be had: between
// the two this process may have to wait.
func readBoth() (at time.Time, count uint64) {
	least := time.Hour
	for range 10 {
		before := time.Now()
		c := rdtsc()
		if took := time.Since(before); took < least {
			least, at, count = took, before, c
		}
	}
	return at, count
}
