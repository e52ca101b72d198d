package config

// defaultMonitor is where Debian has QEMU for x86-64.
const defaultMonitor = "/usr/bin/qemu-system-x86_64"

// microvmSettings are what the executor microvm alone is told.
var microvmSettings = []Setting{
	{Key: "microvm_monitor", Doc: "executor microvm: path of QEMU for x86-64; empty: " + defaultMonitor,
		set:  func(c *Config, s string, f folder) error { c.Monitor = f.abs(s); return nil },
		text: func(c *Config) string { return c.Monitor }},
}
