package box

import (
	"strconv"
)

// cpuPeriod is the time, in microseconds, over which the share of the processors
// is measured: 100 ms, the kernel's own default.
const cpuPeriod = 100_000

// HoldCPU makes the share of the processors that a run gets a limit, and reports
// whether it can be one.
func (c *Cgroups) HoldCPU() bool { return c != nil && c.enable("cpu") }

// SetCPU limits the run to so many processors' time.
func (g *Cgroup) SetCPU(processors float64) error {
	return g.set("cpu.max", strconv.Itoa(int(processors*cpuPeriod))+" "+strconv.Itoa(cpuPeriod))
}
