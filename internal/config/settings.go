package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Config is what an installation is told. Read one with [Load].
type Config struct {
	Data         string            // folder of the database; absolute
	State        string            // folder of the log's high-water mark; absolute
	Checkpoints  string            // second folder of the log's checkpoints; empty: none; absolute
	Store        string            // Sqlite or Postgres
	DatabaseURL  string            // of Postgres; a secret
	Enabled      bool              // the host's switch
	Production   bool              // conveniences that grant and open are off
	Interpreters map[string]string // extension to absolute path, or to "runtime:NAME:/path": see InRuntime
	Network      gate.Network      // the most that a tenant may ask for
	RequireWalls []string          // that must stand, whoever the tenant is
	TrustClaimed bool
	Skills       []string // folders that hold skills; absolute
	Executor     string
	Remote       Remote   // what the executor "remote" is told
	Fleet        Fleet    // what the executor "fleet" is told, and a runner that joins one
	Folders      []string // folders that a sandboxed script sees besides /usr; absolute
	OCIRuntime   string   // of the executor "container": path of crun, runc or runsc; absolute
	Engine       string   // of the executor "container", in place of OCIRuntime: where Docker or Podman listens, unix:///PATH
	Microvm      Microvm  // what the executor "microvm" is told
	Runtime      string   // folder for staging; empty: the user's runtime folder

	Slots, SlotsPerTenant, Queue, QueuePerTenant int // zero: the runner's defaults
	SlotWait, Grace, Lease                       time.Duration
	CheckpointInterval                           time.Duration
	KeepContents, KeepCalls, KeepDetails         time.Duration // zero: for ever
	Witnesses                                    []string      // that cosign the log: address, blank, key
	WitnessQuorum                                int
	DiskRate                                     int64 // bytes a second of a sandboxed run and a disk; zero: no limit
	Content                                      bundle.Limits
	Quota                                        access.Quota

	Serve  Serve  // what `tracon serve` is told, and `tracon runner serve` in part
	Runner Runner // what `tracon runner serve` alone is told

	Server  string // that the verbs act on in place of the data folder; empty: none
	KeyFile string // with the key for it; absolute; empty: none
	CAFile  string // with the certificates that its own may be signed by; absolute; empty: the system's

	// File is the configuration file that was read, empty where there is none.
	// Without one, the host's switch and its allow-list are kept in the data folder.
	File string

	origins map[string]string
}

// A Setting is one line of the table.
type Setting struct {
	Key  string
	Doc  string
	list bool // a list of texts
	dict bool // a map of texts
	set  func(c *Config, text string, from folder) error
	text func(c *Config) string
}

// The stores. The database of Sqlite is a file in the folder of data.
const (
	Sqlite   = "sqlite"
	Postgres = "postgres"
)

// Executors are the names of the executors, the default of Linux first.
var Executors = []string{"sandbox", "process", "container", "microvm", "remote", "fleet"}

// defaultExecutor is the strongest that the platform has.
func defaultExecutor() string {
	if runtime.GOOS == "linux" {
		return "sandbox"
	}
	return "process"
}

// folder resolves a relative path beside where it was written.
type folder string

func (f folder) abs(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(string(f), p)
}

// list resolves folders that stand behind each other with commas.
func (f folder) list(s string) []string {
	var dirs []string
	for dir := range strings.SplitSeq(s, ",") {
		if dir != "" {
			dirs = append(dirs, f.abs(dir))
		}
	}
	return dirs
}

// Env returns the environment variable that overrides the setting.
func (s Setting) Env() string { return "TRACON_" + strings.ToUpper(s.Key) }

// Settings is the table of all settings, in the order in which they are shown.
var Settings = slices.Concat(settings, microvmSettings, remoteSettings, fleetSettings, serveSettings, runnerSettings)

// settings are those that every verb reads.
var settings = []Setting{
	{Key: "data", Doc: "folder that holds the database; made with mode 0700 on first use",
		set:  func(c *Config, s string, f folder) error { c.Data = f.abs(s); return notBlank(s) },
		text: func(c *Config) string { return c.Data }},
	{Key: "store", Doc: "where everything is kept: " + Sqlite + ", a file in the folder of data, or " + Postgres + ", for several hosts",
		set: func(c *Config, s string, _ folder) error {
			if s != Sqlite && s != Postgres {
				return fmt.Errorf("%q is not a store; there is: %s, %s", s, Sqlite, Postgres)
			}
			c.Store = s
			return nil
		},
		text: func(c *Config) string { return c.Store }},
	{Key: "database_url", Doc: "address of the database of store " + Postgres + ", such as postgres://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full; never shown",
		set: func(c *Config, s string, _ folder) error { c.DatabaseURL = s; return nil },
		text: func(c *Config) string {
			if c.DatabaseURL == "" {
				return ""
			}
			return "(secret)"
		}},
	{Key: "state", Doc: "folder of the log's high-water mark, which tells of a database that was rolled back; best on another disk than data",
		set:  func(c *Config, s string, f folder) error { c.State = f.abs(s); return notBlank(s) },
		text: func(c *Config) string { return c.State }},
	{Key: "checkpoints", Doc: "second folder for the log's signed checkpoints, best where this user can only add; it must be there; empty: none",
		set:  func(c *Config, s string, f folder) error { c.Checkpoints = f.abs(s); return nil },
		text: func(c *Config) string { return c.Checkpoints }},
	duration("checkpoint_interval", "how often the log is signed while this program runs; 0s: 1m0s", func(c *Config) *time.Duration { return &c.CheckpointInterval }),
	duration("keep_contents", "how long `tracon retention apply` leaves a content that no grant in force and no imported skill needs, 48h0m0s at least; 0s: for ever", func(c *Config) *time.Duration { return &c.KeepContents }),
	duration("keep_calls", "how long it leaves the record of a call, since its ending; 0s: for ever", func(c *Config) *time.Duration { return &c.KeepCalls }),
	duration("keep_details", "how long it leaves a record's arguments, salt and notes; 0s: as long as the record", func(c *Config) *time.Duration { return &c.KeepDetails }),
	{Key: "witnesses", list: true, Doc: "witnesses that cosign the log, each as its address, a blank, and its key",
		set: func(c *Config, s string, _ folder) error {
			c.Witnesses = nil
			for w := range strings.SplitSeq(s, ",") {
				if w != "" {
					c.Witnesses = append(c.Witnesses, w)
				}
			}
			return nil
		},
		text: func(c *Config) string { return strings.Join(c.Witnesses, ",") }},
	whole("witness_quorum", "how many of them must have cosigned, or nothing runs; 0: none has to", func(c *Config) *int { return &c.WitnessQuorum }),
	boolean("enabled", "the host's switch: off, and nothing runs", func(c *Config) *bool { return &c.Enabled }),
	boolean("production", "switches off what is convenient on a laptop, such as run --grant", func(c *Config) *bool { return &c.Production }),
	{Key: "interpreters", dict: true, Doc: "allow-list: file extension to an interpreter's absolute path, or to runtime:NAME:/path for one in a runtime, or to runtime:NAME for one of a runner; empty, and nothing runs",
		set: setInterpreters,
		text: func(c *Config) string {
			var pairs []string
			for _, ext := range slices.Sorted(maps.Keys(c.Interpreters)) {
				pairs = append(pairs, ext+"="+c.Interpreters[ext])
			}
			return strings.Join(pairs, ",")
		}},
	{Key: "skills", list: true, Doc: "folders that hold skills, the first wins where two have one name",
		set:  func(c *Config, s string, f folder) error { c.Skills = f.list(s); return nil },
		text: func(c *Config) string { return strings.Join(c.Skills, ",") }},
	{Key: "executor", Doc: "what runs the scripts: " + strings.Join(Executors, ", ") + "; process walls nothing off, container needs an OCI runtime or an engine, microvm QEMU, remote asks a runner service, fleet many of them",
		set: func(c *Config, s string, _ folder) error {
			if !slices.Contains(Executors, s) {
				return fmt.Errorf("%q is not an executor; there is: %s", s, strings.Join(Executors, ", "))
			}
			c.Executor = s
			return nil
		},
		text: func(c *Config) string { return c.Executor }},
	{Key: "runtime", Doc: "folder below which each run gets its own; empty: the user's runtime folder",
		set:  func(c *Config, s string, f folder) error { c.Runtime = f.abs(s); return nil },
		text: func(c *Config) string { return c.Runtime }},
	{Key: "container_runtime", Doc: "executor container: path of the OCI runtime, crun, runc or runsc, such as /usr/bin/crun",
		set:  func(c *Config, s string, f folder) error { c.OCIRuntime = f.abs(s); return nil },
		text: func(c *Config) string { return c.OCIRuntime }},
	{Key: "container_engine", Doc: "executor container, in place of container_runtime: where Docker or Podman listens, such as unix:///run/docker.sock",
		set: func(c *Config, s string, _ folder) error {
			if path, ok := strings.CutPrefix(s, "unix://"); s != "" && (!ok || !filepath.IsAbs(path)) {
				return fmt.Errorf("%q is not unix:// and an absolute path, such as unix:///run/docker.sock", s)
			}
			c.Engine = s
			return nil
		},
		text: func(c *Config) string { return c.Engine }},
	{Key: "folders", list: true, Doc: "folders that a sandboxed script sees besides /usr, for reading, such as that of an interpreter in /opt",
		set:  func(c *Config, s string, f folder) error { c.Folders = f.list(s); return nil },
		text: func(c *Config) string { return strings.Join(c.Folders, ",") }},
	{Key: "network", Doc: "the most that a tenant's policy may ask for: none, or loopback, where a run's own processes reach each other on 127.0.0.1",
		set: func(c *Config, s string, _ folder) error {
			c.Network = gate.Network(s)
			return gate.Host{Network: c.Network}.Validate()
		},
		text: func(c *Config) string { return string(cmp.Or(c.Network, gate.NoNetwork)) }},
	{Key: "require_walls", list: true, Doc: "walls that must stand, or nothing runs, by the names that `tracon doctor` has, such as memory; empty: the tier's alone",
		set: func(c *Config, s string, _ folder) error {
			c.RequireWalls = nil
			for wall := range strings.SplitSeq(s, ",") {
				if wall != "" {
					c.RequireWalls = append(c.RequireWalls, wall)
				}
			}
			return gate.Host{RequireWalls: c.RequireWalls}.Validate()
		},
		text: func(c *Config) string { return strings.Join(c.RequireWalls, ",") }},
	boolean("trust_claimed", "take an executor's own word for its tier and its walls", func(c *Config) *bool { return &c.TrustClaimed }),
	whole("slots", "scripts that run at once; 0: twice the processors", func(c *Config) *int { return &c.Slots }),
	whole("slots_per_tenant", "of them for one tenant; 0: half", func(c *Config) *int { return &c.SlotsPerTenant }),
	whole("queue", "calls on their way to a slot; 0: 1024", func(c *Config) *int { return &c.Queue }),
	whole("queue_per_tenant", "of them for one tenant; 0: half", func(c *Config) *int { return &c.QueuePerTenant }),
	duration("lease", "store postgres: how long a host keeps its slots without reaching the database; 0s: 15s", func(c *Config) *time.Duration { return &c.Lease }),
	duration("slot_wait", "how long a call waits for a slot; 0s: 30s", func(c *Config) *time.Duration { return &c.SlotWait }),
	duration("grace", "how long past a script's timeout its end is waited for; 0s: 5s", func(c *Config) *time.Duration { return &c.Grace }),
	size("disk_rate", "what a sandboxed run may read from a disk in a second, such as 50MiB; 0: not limited", func(c *Config) *int64 { return &c.DiskRate }),
	size("max_file", "size of one file of a skill; 0: "+FormatSize(bundle.DefaultFileBytes), func(c *Config) *int64 { return &c.Content.FileBytes }),
	size("max_skill", "size of all files of a skill; 0: "+FormatSize(bundle.DefaultTotalBytes), func(c *Config) *int64 { return &c.Content.TotalBytes }),
	whole("max_files", "files of a skill; 0: "+strconv.Itoa(bundle.DefaultFiles), func(c *Config) *int { return &c.Content.Files }),
	whole("max_depth", "elements of a path in a skill; 0: "+strconv.Itoa(bundle.DefaultDepth), func(c *Config) *int { return &c.Content.Depth }),
	whole("max_path", "bytes of a path in a skill; 0: "+strconv.Itoa(bundle.DefaultPathBytes), func(c *Config) *int { return &c.Content.PathBytes }),
	whole("tenant_skills", "imported skills of a tenant whose own quota says nothing; 0: "+strconv.Itoa(access.DefaultSkills), func(c *Config) *int { return &c.Quota.Skills }),
	size("tenant_bytes", "size of all contents of such a tenant, each once; 0: "+FormatSize(access.DefaultBytes), func(c *Config) *int64 { return &c.Quota.Bytes }),
	whole("tenant_grants", "grants of such a tenant that are not revoked; 0: "+strconv.Itoa(access.DefaultGrants), func(c *Config) *int { return &c.Quota.Grants }),
	whole("tenant_keys", "keys of such a tenant that are in force; 0: "+strconv.Itoa(access.DefaultKeys), func(c *Config) *int { return &c.Quota.Keys }),
	{Key: "server", Doc: "server that the verbs act on in place of the data folder: https://HOST, or unix:///PATH; empty: none",
		set:  func(c *Config, s string, _ folder) error { c.Server = s; return nil },
		text: func(c *Config) string { return c.Server }},
	file("key_file", "file with the key for it, which nobody else may read; the variable TRACON_KEY holds the key itself, and wins over the setting", func(c *Config) *string { return &c.KeyFile }),
	file("ca_file", "file with the certificates, in PEM, that the server's may be signed by; empty: the system's", func(c *Config) *string { return &c.CAFile }),
}

func notBlank(s string) error {
	if s == "" {
		return fmt.Errorf("it is blank")
	}
	return nil
}

func boolean(key, doc string, field func(*Config) *bool) Setting {
	return Setting{Key: key, Doc: doc,
		set: func(c *Config, s string, _ folder) error {
			if s != "true" && s != "false" {
				return fmt.Errorf("%q is neither true nor false", s)
			}
			*field(c) = s == "true"
			return nil
		},
		text: func(c *Config) string { return strconv.FormatBool(*field(c)) }}
}

func whole(key, doc string, field func(*Config) *int) Setting {
	return Setting{Key: key, Doc: doc,
		set: func(c *Config, s string, _ folder) error {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a whole number from 0 up", s)
			}
			*field(c) = n
			return nil
		},
		text: func(c *Config) string { return strconv.Itoa(*field(c)) }}
}

func duration(key, doc string, field func(*Config) *time.Duration) Setting {
	return Setting{Key: key, Doc: doc,
		set: func(c *Config, s string, _ folder) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return fmt.Errorf("%q is not a duration; write one such as 30s or 1m30s", s)
			}
			*field(c) = d
			return nil
		},
		text: func(c *Config) string { return field(c).String() }}
}

func size(key, doc string, field func(*Config) *int64) Setting {
	return Setting{Key: key, Doc: doc,
		set: func(c *Config, s string, _ folder) (err error) {
			*field(c), err = ParseSize(s)
			return err
		},
		text: func(c *Config) string { return FormatSize(*field(c)) }}
}
