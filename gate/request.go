package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/mask"
)

// A Request is a call that passed every gate and stands in the audit log. Only
// [Gate.Admit] and [Gate.Accept] make one. It never changes, holds no store and no
// log, and is safe for concurrent use. Only Valid and LogValue may be called on the zero
// Request; the others panic.
type Request struct{ s *sealed }

type sealed struct {
	id, actor   string
	open        open
	interpreter interpreter
	tier        tier
	arguments   arguments
	pinned      pinned
	receipt     audit.Receipt
	live        *Live
	still       func(ctx context.Context) error
	masker      *mask.Masker
}

// seal is the only place that makes a Request.
func seal(call Call, o open, i interpreter, t tier, a arguments, p pinned, r audit.Receipt) (Request, error) {
	if !r.Valid() {
		return Request{}, errors.New("gate: no audit receipt")
	}
	// The compiler sees that each proof is there, but not that it is not the zero
	// one of a refusal that was passed over.
	if o.tenant == "" || i.extension == "" || !t.Tier.Valid() || a.mode == "" || p.grant.ID == "" || p.bundle.IsZero() {
		return Request{}, errors.New("gate: a proof is missing")
	}
	return Request{&sealed{call.ID, call.Actor, o, i, t, a, p, r, call.Live, call.Still, o.policy.masker()}}, nil
}

// Valid reports whether r came from a gate; the zero Request did not.
func (r Request) Valid() bool { return r.s != nil }

// ID returns the call's id.
func (r Request) ID() string { return r.s.id }

// Tenant returns the tenant whose grant opened the gates.
func (r Request) Tenant() string { return r.s.open.tenant }

// Actor returns who asked.
func (r Request) Actor() string { return r.s.actor }

// Skill returns the skill's name.
func (r Request) Skill() string { return r.s.pinned.skill }

// Script returns the script's exact path in the skill, or its name.
func (r Request) Script() string { return r.s.pinned.script }

// Extension returns the entry of the allow-list that the script fell under, such as "py".
func (r Request) Extension() string { return r.s.interpreter.extension }

// Interpreter returns what runs the script, as the allow-list says.
func (r Request) Interpreter() Interpreter { return r.s.interpreter.Interpreter }

// Bundle returns every file that the script may see: the very bytes that were hashed.
func (r Request) Bundle() bundle.Bundle { return r.s.pinned.bundle }

// Content returns a copy of the script's own bytes.
func (r Request) Content() []byte {
	text, _, _ := r.s.pinned.bundle.Text(r.s.pinned.script)
	return []byte(text)
}

// ScriptDigest returns the SHA-256 of the script's own bytes.
func (r Request) ScriptDigest() bundle.Digest {
	_, d, _ := r.s.pinned.bundle.Text(r.s.pinned.script)
	return d
}

// Digest returns the digest of the whole closure, which the grant pins.
func (r Request) Digest() bundle.Digest { return r.s.pinned.bundle.Digest() }

// Peer returns the host that delivered the call; zero for one that was admitted here.
func (r Request) Peer() Peer { return r.s.open.peer.clone() }

// GrantID returns the id of the grant that opened the gates. Of a call that was
// delivered it names the peer: see [Gate.Accept].
func (r Request) GrantID() string { return r.s.pinned.grant.ID }

// Mode returns how the script takes its arguments.
func (r Request) Mode() Mode { return r.s.arguments.mode }

// Arguments returns the arguments as JSON, exactly as they were validated.
func (r Request) Arguments() json.RawMessage { return slices.Clone(r.s.arguments.json) }

// Words returns what stands after the script's path on its command line.
func (r Request) Words() []string { return slices.Clone(r.s.arguments.words) }

// Stdin returns what the script reads on standard input; nothing for any mode but stdin.
func (r Request) Stdin() []byte { return slices.Clone(r.s.arguments.stdin) }

// Inputs returns the files to lay out below inputs/.
func (r Request) Inputs() bundle.Bundle { return r.s.arguments.inputs }

// ArgumentsSalt returns the salt of the commitment to the arguments that stands in the log.
func (r Request) ArgumentsSalt() []byte { return slices.Clone(r.s.arguments.salt[:]) }

// Module returns the Python module that the script is started as, from the
// skill's root; empty: the script is started by its path.
func (r Request) Module() string { return r.s.arguments.module }

// OutputPatterns returns which files below outputs/ come back; empty: all. See [MatchOutput].
func (r Request) OutputPatterns() []string { return slices.Clone(r.s.arguments.outputs) }

// Timeout returns how long the script may run.
func (r Request) Timeout() time.Duration { return r.s.arguments.timeout }

// MaxOutputBytes returns how many bytes of each stream an executor keeps.
func (r Request) MaxOutputBytes() int { return r.s.open.policy.MaxOutput }

// MaxOutputs returns how many bytes and how many files an executor collects from outputs/.
func (r Request) MaxOutputs() (bytes int64, files int) {
	return r.s.open.policy.MaxOutputs, r.s.open.policy.MaxOutputFiles
}

// Memory returns how many bytes of memory the run may have, where an executor can hold that.
func (r Request) Memory() int64 { return r.s.open.policy.Memory }

// Processes returns how many processes and threads the run may have, where an executor can hold that.
func (r Request) Processes() int { return r.s.open.policy.Processes }

// Network returns what the run may reach, where an executor can hold that.
func (r Request) Network() Network { return r.s.open.network() }

// RequireWalls returns the names of [Walls] that must stand: those that the host and the
// policy ask for, sorted, each once; none is asked for: nil.
func (r Request) RequireWalls() []string {
	walls := slices.Concat(r.s.open.host.RequireWalls, r.s.open.policy.RequireWalls)
	slices.Sort(walls)
	return slices.Compact(walls)
}

// Environment returns the variables that the policy adds to the fixed set.
func (r Request) Environment() map[string]string { return maps.Clone(r.s.open.policy.Environment) }

// Mask returns b with the values that the policy marks as secret replaced by
// "[secret NAME]", and this system's own keys by "[tracon key]". Cut says that b was cut
// at its end, perhaps within one. A value that is encoded is not found.
func (r Request) Mask(b []byte, cut bool) []byte { return r.s.masker.Bytes(b, cut) }

// Standing returns how strong the executor was taken to be.
func (r Request) Standing() Standing { return r.s.tier.Standing }

// KeepArguments reports whether the record of the call keeps the arguments' text.
func (r Request) KeepArguments() bool { return r.s.open.policy.KeepArguments }

// Receipt returns the proof that the admission stands in the log.
func (r Request) Receipt() audit.Receipt { return r.s.receipt }

// Live returns where output may be shown while the script runs. It may be nil,
// which takes everything and shows nothing.
func (r Request) Live() *Live { return r.s.live }

// LogValue keeps content and arguments out of logs.
func (r Request) LogValue() slog.Value {
	if !r.Valid() {
		return slog.StringValue("not admitted")
	}
	return slog.GroupValue(slog.String("id", r.ID()), slog.String("tenant", r.Tenant()), slog.String("skill", r.Skill()),
		slog.String("script", r.Script()), slog.String("digest", r.Digest().String()))
}
