//go:build linux && amd64

package microvm

import (
	"strings"
	"testing"
)

// A machine is told the rate of the processor's counter, and has a source of ticks:
// without, its clock runs at another speed, or a busy host's machine waits for ever.
func TestCounter(t *testing.T) {
	rate := counterRate()
	if rate < 100_000 || rate > 100_000_000 {
		t.Errorf("the processor's counter counts %d thousand in a second", rate)
	}
	line := strings.Join(qemu{"/usr/bin/qemu-system-x86_64", "7.2"}.argv(machine{counter: 2_500_000}), " ")
	for _, want := range []string{"tsc_early_khz=2500000 lpj=10000000 tsc=reliable no_timer_check", "pit=on"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
}
