package config

// Microvm is what the executor microvm alone is told.
type Microvm struct {
	Monitor     string // path of QEMU; empty: Debian's; absolute
	Boot        bool   // each machine is booted; else it is restored of one that was saved
	Snapshots   int64  // bytes that saved machines may take of the disk; zero: the executor's default
	Ahead       int    // machines that are restored before their call comes; zero: the executor's default
	AheadMemory int64  // bytes that these may take together; zero: the executor's default
}

// What the executor's defaults are, for people; its room is the wiring's to name.
const (
	defaultMonitor     = "/usr/bin/qemu-system-x86_64"
	defaultSnapshots   = 2 << 30
	defaultAhead       = "2"
	defaultAheadMemory = 2 << 30
)

// microvmSettings are the settings of Microvm.
var microvmSettings = []Setting{
	{Key: "microvm_monitor", Doc: "executor microvm: path of QEMU for x86-64; empty: " + defaultMonitor,
		set:  func(c *Config, s string, f folder) error { c.Microvm.Monitor = f.abs(s); return nil },
		text: func(c *Config) string { return c.Microvm.Monitor }},
	boolean("microvm_boot", "executor microvm: boot a machine for each run; otherwise it is restored of one that was saved, where that can be", func(c *Config) *bool { return &c.Microvm.Boot }),
	size("microvm_snapshots", "executor microvm: what saved machines may take of the disk, in the data folder; 0: "+FormatSize(defaultSnapshots), func(c *Config) *int64 { return &c.Microvm.Snapshots }),
	whole("microvm_ahead", "executor microvm: how many machines are restored before their call comes, for tenants that call often; 0: "+defaultAhead, func(c *Config) *int { return &c.Microvm.Ahead }),
	size("microvm_ahead_memory", "executor microvm: what these may take together, at most; less than one may take: none waits; 0: "+FormatSize(defaultAheadMemory), func(c *Config) *int64 { return &c.Microvm.AheadMemory }),
}
