package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// An Interpreter is what runs the scripts of one extension: a file of this host
// (Path and Digest), a file in a runtime that is kept here (Name, Path, Digest and
// Image), or a runtime of an executor elsewhere (Name alone).
type Interpreter struct {
	Path   string        `json:"path,omitempty"`  // absolute: on this host, or in the runtime where there is a Name
	Name   string        `json:"name,omitempty"`  // a runtime's name, such as "python-3.12"
	Digest bundle.Digest `json:"digest,omitzero"` // of the file at Path, as it was probed
	Image  bundle.Digest `json:"image,omitzero"`  // of the runtime's root file system, as it was probed
}

// A Host is what holds for every tenant. The zero Host is off and has no
// interpreter: nothing runs.
type Host struct {
	Enabled bool `json:"enabled"` // the host's switch

	// Interpreters is the allow-list: a file extension without the dot, such as
	// "py", to what runs it. Empty: nothing runs.
	Interpreters map[string]Interpreter `json:"interpreters"`

	// Runtimes are the names of the root file systems that are kept here, and their
	// digests. A name is for people: an interpreter of the allow-list has the digest,
	// and stays in that one when the name is given to another.
	Runtimes map[string]bundle.Digest `json:"runtimes,omitempty"`

	// Network is the most that a tenant's policy may ask for. Empty: no network.
	Network Network `json:"network,omitempty"`

	// RequireWalls are names of [Walls] that must stand, whoever the tenant is, beside
	// those that its policy asks for. Empty: the tier's alone.
	RequireWalls []string `json:"requireWalls,omitempty"`

	// TrustClaimed takes the tier that an executor claims without a proof for its
	// tier, and its walls likewise. Without it such an executor is of the lowest, and
	// none of its walls counts.
	TrustClaimed bool `json:"trustClaimed,omitempty"`

	// Content bounds the files of a skill. Zero fields mean the defaults of
	// [bundle.Limits].
	Content bundle.Limits `json:"content,omitzero"`
}

// Limits of a run when a [Policy] leaves them zero, and the most it may set.
const (
	DefaultMaxArguments    = 64 << 10
	DefaultMaxOutput       = 256 << 10
	DefaultMaxInputs       = 32 << 20
	DefaultMaxOutputs      = 32 << 20
	DefaultMaxOutputFiles  = 256
	DefaultTimeout         = 30 * time.Second
	DefaultMemory          = 256 << 20
	DefaultProcesses       = 64
	FloorMemory            = 4 << 20 // less starts nothing in a sandbox: its own files need more
	CeilingMaxArguments    = 8 << 20
	CeilingMaxOutput       = 64 << 20
	CeilingTimeout         = 24 * time.Hour
	CeilingEnvironment     = 64       // variables
	CeilingEnvironmentText = 4 << 10  // bytes of one value
	CeilingEnvironmentSize = 64 << 10 // bytes of all of them, with their names: see [MaxArgumentTotal]
	ceilingSize            = 64 << 30 // of every other size: above it is a slip of the pen
)

// A Policy is what holds for one tenant: its switch, below the host's, and its
// limits. The zero Policy is off. It can only narrow what the host allows.
type Policy struct {
	Enabled bool `json:"enabled"`

	// Suspended says that the platform switched the tenant off as a whole: nothing of it
	// runs, whatever Enabled says. It is no part of the setting: what keeps the policies
	// tells it when a gate asks.
	Suspended bool `json:"-"`

	// Interpreters are the extensions of the host's allow-list that the tenant may
	// use. Empty: none. What the host does not list stays closed.
	Interpreters []string `json:"interpreters"`

	MinTier        grant.Tier    `json:"minTier,omitempty"`        // the least tier, beside the grant's; empty: the grant's alone
	MaxArguments   int           `json:"maxArguments,omitempty"`   // bytes of a call's arguments; zero means 64 KiB, at most 8 MiB
	MaxOutput      int           `json:"maxOutput,omitempty"`      // bytes of each output stream; zero means 256 KiB, at most 64 MiB
	MaxInputs      int64         `json:"maxInputs,omitempty"`      // bytes of all input files; zero means 32 MiB
	MaxOutputs     int64         `json:"maxOutputs,omitempty"`     // bytes of all output files; zero means 32 MiB
	MaxOutputFiles int           `json:"maxOutputFiles,omitempty"` // number of output files; zero means 256
	Timeout        time.Duration `json:"-"`                        // of a run; zero means 30 s, at most 24 h; in JSON timeoutSeconds
	Memory         int64         `json:"memory,omitempty"`         // bytes of a run, where the executor can hold it, 4 MiB at least; zero means 256 MiB
	Processes      int           `json:"processes,omitempty"`      // processes and threads of a run, where the executor can hold it; zero means 64

	// Network is what scripts may reach, where the host allows it and the executor can
	// hold it. Empty: no network.
	Network Network `json:"network,omitempty"`

	// RequireWalls are names of [Walls] that must stand, such as "memory": where the
	// executor's limits do not hold on the host, nothing runs. Empty: the host's alone.
	RequireWalls []string `json:"requireWalls,omitempty"`

	// KeepArguments keeps the text of each call's arguments in its record. Without
	// it the record has their digest and size alone.
	KeepArguments bool `json:"keepArguments,omitempty"`

	// Environment is added to the fixed set that a script sees. See [CheckEnvironment].
	Environment map[string]string `json:"environment,omitempty"`

	// Secrets are names of Environment whose values are masked in what a run writes and
	// in what is told of it, and are not shown again. A value has at least 8 bytes.
	// Empty: none; this system's own keys are masked even so. See [Request.Mask].
	Secrets []string `json:"secrets,omitempty"`
}

type policyJSON struct {
	plainPolicy
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
}

type plainPolicy Policy

// MarshalJSON writes p with the timeout in seconds.
func (p Policy) MarshalJSON() ([]byte, error) {
	if p.Interpreters == nil {
		p.Interpreters = []string{}
	}
	return json.Marshal(policyJSON{plainPolicy(p), p.Timeout.Seconds()})
}

// UnmarshalJSON reads what MarshalJSON writes, and no other members: none in
// another case, and none twice. A timeout is read to the microsecond.
func (p *Policy) UnmarshalJSON(b []byte) error {
	var in policyJSON
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return err
	}
	if err := exactMembers(b); err != nil {
		return err
	}
	timeout := time.Duration(math.Round(min(max(in.TimeoutSeconds, -1e9), 1e9)*1e6)) * time.Microsecond
	if timeout == 0 && in.TimeoutSeconds != 0 {
		return fmt.Errorf("%w: timeoutSeconds of %g is less than a microsecond", ErrPolicy, in.TimeoutSeconds)
	}
	*p = Policy(in.plainPolicy)
	p.Timeout = timeout
	return nil
}

// policyMembers are the names of a policy's members.
var policyMembers = func() map[string]bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[policyJSON]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
	}
	return names
}()

// exactMembers refuses what encoding/json lets through: ENABLED for enabled, and
// a name that stands twice, in the object or in one within it. The text is valid JSON.
func exactMembers(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	var seen []map[string]bool // of the objects around, nil for a list
	name := false              // a name comes next
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'):
			seen, name = append(seen, map[string]bool{}), true
			continue
		case json.Delim('['):
			seen, name = append(seen, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			seen = seen[:len(seen)-1]
			name = len(seen) > 0 && seen[len(seen)-1] != nil
			continue
		}
		if len(seen) == 0 || seen[len(seen)-1] == nil {
			continue
		}
		if s, ok := token.(string); ok && name {
			if seen[len(seen)-1][s] || len(seen) == 1 && !policyMembers[s] {
				return fmt.Errorf("%w: the member %q stands twice or is not one", ErrPolicy, s)
			}
			seen[len(seen)-1][s] = true
		}
		name = !name
	}
}

// Validate says what in h cannot hold, or nil. The interpreters themselves are
// looked at by the gate.
func (h Host) Validate() error {
	var errs []error
	for _, ext := range slices.Sorted(maps.Keys(h.Interpreters)) {
		errs = append(errs, CheckExtension(ext))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Runtimes)) {
		errs = append(errs, CheckRuntime(name))
		if h.Runtimes[name].IsZero() {
			errs = append(errs, fmt.Errorf("%w: the runtime %q has no digest", ErrPolicy, name))
		}
	}
	return errors.Join(append(errs, h.Network.check(), checkWalls(h.RequireWalls))...)
}

// ErrPolicy is wrapped by the error for a policy, or for a host's settings, that
// cannot hold.
var ErrPolicy = errors.New("gate: bad policy")

// Validate says what in p cannot hold, or nil.
func (p Policy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrPolicy}, args...)...))
	}
	for _, ext := range p.Interpreters {
		if err := CheckExtension(ext); err != nil {
			errs = append(errs, err)
		}
	}
	if p.MinTier != "" && !p.MinTier.Valid() {
		bad("%q is not a tier; the tiers are %v", p.MinTier, grant.Tiers())
	}
	errs = append(errs, p.Network.check(), checkWalls(p.RequireWalls))
	for _, l := range []struct {
		name string
		n    int64
		most int64
	}{
		{"arguments", int64(p.MaxArguments), CeilingMaxArguments},
		{"output", int64(p.MaxOutput), CeilingMaxOutput},
		{"timeout", int64(p.Timeout), int64(CeilingTimeout)},
		{"inputs", p.MaxInputs, ceilingSize},
		{"outputs", p.MaxOutputs, ceilingSize},
		{"output files", int64(p.MaxOutputFiles), 1 << 20},
		{"memory", p.Memory, ceilingSize},
		{"processes", int64(p.Processes), 1 << 20},
	} {
		if l.n < 0 || l.n > l.most {
			bad("%s of %d; it may be at most %d, and zero means the default", l.name, l.n, l.most)
		}
	}
	if p.Memory > 0 && p.Memory < FloorMemory {
		bad("memory of %d bytes; a run needs at least %d, and zero means the default", p.Memory, FloorMemory)
	}
	if len(p.Environment) > CeilingEnvironment {
		bad("%d variables in the environment, at most %d", len(p.Environment), CeilingEnvironment)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		if err := CheckEnvironment(name, p.Environment[name]); err != nil {
			errs = append(errs, err)
		}
		size += len(name) + len("=") + len(p.Environment[name]) + 1 + 8
	}
	if size > CeilingEnvironmentSize {
		bad("%d bytes in the environment, at most %d", size, CeilingEnvironmentSize)
	}
	return errors.Join(append(errs, p.checkSecrets())...)
}

func (p Policy) orDefaults() Policy {
	p.MaxArguments = cmp.Or(p.MaxArguments, DefaultMaxArguments)
	p.MaxOutput = cmp.Or(p.MaxOutput, DefaultMaxOutput)
	p.MaxInputs = cmp.Or(p.MaxInputs, DefaultMaxInputs)
	p.MaxOutputs = cmp.Or(p.MaxOutputs, DefaultMaxOutputs)
	p.MaxOutputFiles = cmp.Or(p.MaxOutputFiles, DefaultMaxOutputFiles)
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	p.Memory = cmp.Or(p.Memory, DefaultMemory)
	p.Processes = cmp.Or(p.Processes, DefaultProcesses)
	return p
}

var extension = regexp.MustCompile(`^[A-Za-z0-9_+-]{1,32}$`)

// CheckExtension says why ext cannot stand in an allow-list, or nil: 1 to 32
// letters, digits, "_", "+" or "-", without a dot.
func CheckExtension(ext string) error {
	if !extension.MatchString(ext) {
		return fmt.Errorf("%w: %q is not a file extension; write it without the dot, such as py", ErrPolicy, ext)
	}
	return nil
}

var runtimeName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckRuntime says why name cannot be that of a runtime which is kept here, or
// nil: 1 to 64 lower-case letters, digits, ".", "_" or "-", the first a letter or
// a digit.
func CheckRuntime(name string) error {
	if !runtimeName.MatchString(name) {
		return fmt.Errorf("%w: %q is not a runtime's name; write one such as python-3.12, in lower case", ErrPolicy, name)
	}
	return nil
}

// CheckTenant says why name cannot be that of a tenant, or nil: see
// [grant.CheckName], and it must not begin with "@".
func CheckTenant(name string) error {
	if strings.HasPrefix(name, "@") {
		return fmt.Errorf("%w: a tenant's name cannot begin with @", grant.ErrRef)
	}
	return grant.CheckName("tenant", name)
}

var variable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)

// forbidden are variables with which whoever sets them runs code in a script's
// interpreter, changes what it loads, or sends its traffic elsewhere.
var forbidden = strings.Fields(`LD_* DYLD_* GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_* MALLOC_* TZDIR
	TERMINFO* PYTHON* PIP_* UV_* VIRTUAL_ENV CONDA_* NODE_* NPM_* DENO_* BUN_* BASH_ENV ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND IFS CDPATH
	BASH_FUNC_* ZDOTDIR FPATH PERL* RUBY* GEM_* BUNDLE_* JAVA_* _JAVA_* JDK_* CLASSPATH DOTNET_* CORECLR_* COMPLUS_* PHP* LUA_* TCL* R_*
	OPENSSL_* SSL_* CURL_* *_CA_BUNDLE KRB5* SASL_* GIT_* LESSOPEN LESSCLOSE PAGER MANPAGER EDITOR VISUAL BROWSER SHELL *_PROXY
	PATHEXT COMSPEC SYSTEMROOT WINDIR PATH HOME TMPDIR TMP TEMP LANG LANGUAGE LC_* TZ TRACON_*`)

// CheckEnvironment says why a policy cannot set the variable name to value, or
// nil. A name is upper case (A–Z, 0–9, _), at most 64 bytes; a value is at most
// 4 KiB of UTF-8 without NUL. Names by which a loader or an interpreter is steered, and
// those of the fixed set, are refused even so.
func CheckEnvironment(name, value string) error {
	if !variable.MatchString(name) {
		return fmt.Errorf("%w: variable %q; a name has 1 to 64 of A-Z, 0-9 and _", ErrPolicy, name)
	}
	for _, f := range forbidden {
		if ok, _ := path.Match(f, name); ok {
			return fmt.Errorf("%w: variable %s steers a loader or an interpreter, or is fixed (%s)", ErrPolicy, name, f)
		}
	}
	if len(value) > CeilingEnvironmentText || strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		return fmt.Errorf("%w: the value of %s has %d bytes; it may have %d of UTF-8, without NUL", ErrPolicy, name, len(value), CeilingEnvironmentText)
	}
	return nil
}

// Sources of what the gates look at. Each must be safe for concurrent use. An
// error of theirs is no refusal: it means that something could not be read, and
// nothing runs.
type (
	// Hosts knows what holds for every tenant.
	Hosts interface {
		Host(ctx context.Context) (Host, error)
	}

	// Policies knows what holds for a tenant: the zero Policy for one that it does
	// not know.
	Policies interface {
		Policy(ctx context.Context, tenant string) (Policy, error)
	}

	// Contents is where the bytes of skills come from.
	Contents interface {
		// Find looks the script up in the set of those known, by exact bytes. It
		// joins no paths and follows no links. Where there is none, the error wraps
		// ErrUnknown.
		Find(ctx context.Context, tenant, skill, script string) (Origin, error)

		// Read reads every file of the skill once. An error that wraps
		// bundle.ErrContent or ErrUnknown is a refusal.
		Read(ctx context.Context, tenant, skill string, limits bundle.Limits) (bundle.Bundle, error)
	}

	// Declarer tells how a script takes its arguments, from the bundle and nothing
	// else. An error that wraps bundle.ErrContent is a refusal.
	Declarer interface {
		Declare(b bundle.Bundle, script string) (Declaration, error)
	}

	// Schemas checks arguments.
	Schemas interface {
		// Check decodes value strictly, checks it against schema (empty: no schema),
		// and returns it re-encoded, with every number as it was written. Every error
		// but that of ctx is a refusal.
		Check(ctx context.Context, schema, value []byte) ([]byte, error)
	}
)

// Static is a [Hosts] that never changes.
type Static Host

// Host returns s.
func (s Static) Host(context.Context) (Host, error) { return Host(s), nil }

// ErrUnknown is wrapped by the error for a skill or a script that is not known.
var ErrUnknown = errors.New("not known") // it stands in refusals and in the log, so no room is named

// An Origin says where a script lives.
type Origin int8

// The origins. The zero Origin is none.
const (
	FileScript   Origin = iota + 1 // in a skill's folder, named by its exact path
	StoredScript                   // kept in the store, named by a plain file name
)
