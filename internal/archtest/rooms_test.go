package archtest

// A rule says what a room may import besides the standard library. The tables
// are a statement of policy: a room that is not here is an error, and so is a
// rule for a room that does not exist.
type rule struct {
	rooms string // of this module; see frontDoor
	libs  string // from outside, by module
	spine bool   // nothing from outside but golang.org/x, not even through others
	why   string
}

const anyX = "golang.org/x/mod golang.org/x/sys golang.org/x/term golang.org/x/text"

// frontDoor stands for the root package in a rule.
const frontDoor = "."

// rooms are the arrows of the house: bundle, audit, grant → gate → executor →
// tracon → serve → internal/daemon → internal/cli → cmd.
var rooms = map[string]rule{
	// The spine. An embedder gets it without any library.
	"bundle":       {"", "golang.org/x/text", true, "bytes and their digest stand below everything"},
	"audit":        {"internal/id", "golang.org/x/mod", true, "the log knows nothing of scripts"},
	"audit/notary": {"audit internal/id internal/ownfile", "", true, "what proves the log from outside of it; an embedder has it too"},
	"grant":        {"audit bundle", "", true, "who may run which content; its changes are audited"},
	"gate":         {"audit bundle grant internal/id internal/mask internal/turns", "", true, "the core decides by values alone: no executor, no concrete store"},
	"executor":     {"bundle gate grant", "", true, "the seam sees what was admitted; with no log it can write none (R18)"},
	"slot":         {"", "", true, "what bounds the runs: the runner's own, or that of a store of several hosts"},
	"toolcall":     {"audit bundle", "", true, "a record is made by the runner, not by the gates"},
	"":             {"audit bundle executor executor/process executor/sandbox gate grant internal/turns slot toolcall", "", true, "the front door may name the platform's default executor"},
	"access":       {"audit gate grant", "", true, "who asks, and what that one may do; it knows of no door"},
	"idempotency":  {"bundle", "", true, "which call a client's key stood for; it knows of no door"},
	"admin":        {"access audit bundle gate grant internal/id", "", true, "an operator's changes; they run nothing"},

	// How scripts run.
	"image":                         {"bundle", "golang.org/x/sys", true, "runtimes by digest, shared by the executors: it knows of no executor"},
	"image/oci":                     {"bundle image internal/strictjson", "github.com/klauspost/compress", false, "images as others pack them; beside image, so that who only keeps them has no library"},
	"image/registry":                {"bundle image image/oci internal/outbound internal/strictjson", "github.com/opencontainers/go-digest github.com/opencontainers/image-spec oras.land/oras-go/v2", false, "images from where they are offered; who does not pull has no client of it"},
	"executor/interpreter":          {"bundle executor gate image", "golang.org/x/sys", true, "a base of executors: the host's interpreters"},
	"executor/internal/box":         {"bundle executor executor/internal/notes gate internal/holder", "golang.org/x/sys", true, "a base of executors: staging, capture, collection"},
	"executor/internal/calls":       {"", "golang.org/x/sys", true, "a base of executors: the system calls that a script may make"},
	"executor/internal/notes":       {"bundle gate", "", true, "a base of executors: the words for what people stumble over"},
	"executor/internal/handover":    {"bundle executor gate wire", "", false, "a base of executors: what is asked of another host, and what its answer may say"},
	"executor/fleet":                {"bundle executor executor/internal/handover grant internal/ownfile internal/strictjson wire", "github.com/nats-io/nats.go github.com/nats-io/nkeys", false, "runs travel to many runners over NATS; the only importer of its client"},
	"executor/remote":               {"bundle executor executor/internal/handover gate grant internal/outbound wire wire/ticket", "", false, "one runner service, by HTTP; it starts nothing itself"},
	"executor/container":            {"bundle executor executor/internal/box executor/internal/calls executor/internal/notes executor/interpreter gate grant image", "golang.org/x/sys", true, "containers by an OCI runtime; it knows the bundle, and no library of an engine"},
	"executor/container/engine":     {"bundle executor executor/internal/box executor/internal/calls executor/internal/notes executor/interpreter gate grant image", "github.com/containerd/errdefs github.com/moby/moby/api github.com/moby/moby/client golang.org/x/sys", false, "containers of Docker or Podman; the only importer of its client"},
	"executor/process":              {"bundle executor executor/internal/box executor/internal/notes executor/interpreter grant", "golang.org/x/sys", true, "the plain local process is part of the spine"},
	"executor/sandbox":              {"bundle executor executor/internal/box executor/internal/calls executor/internal/notes executor/interpreter gate grant image", "golang.org/x/sys", true, "the default of Linux is part of the spine"},
	"executor/executortest/bare":    {"bundle executor gate", "", true, "an executor without walls, for the controls of the hostile suite"},
	"executor/executortest/hostile": {"bundle executor executor/executortest gate grant", "golang.org/x/sys", true, "the catalogue of attacks; its requests come from the suite beside it"},
	"executor/executortest":         {"audit bundle executor gate grant internal/id store/memstore", "", true, "a suite makes its requests as production does, so it needs a gate and a store"},

	// Virtual machines, and their parts.
	"executor/microvm":                   {"bundle executor executor/internal/box executor/internal/calls executor/internal/notes executor/interpreter executor/microvm/internal/frame executor/microvm/internal/snapshot executor/microvm/kit gate grant image", "golang.org/x/sys", true, "virtual machines by a monitor; it knows how that is started, and no library of one"},
	"executor/microvm/agent":             {"bundle executor/microvm/internal/frame", "golang.org/x/sys", true, "the first process in a machine: what it imports is carried within the binary a second time"},
	"executor/microvm/internal/frame":    {"", "", true, "what a host and an agent say to each other; it knows neither"},
	"executor/microvm/internal/snapshot": {"bundle internal/ownfile", "", true, "machines that were saved, on the disk; it knows no monitor"},
	"executor/microvm/kit":               {"bundle image internal/ownfile", "", true, "what machines boot from; it starts none"},

	"wire": {"bundle internal/strictjson", "", false, "what a host and a runner say to each other; it decides nothing"},

	"wire/ticket": {"bundle gate", "", true, "proofs for a runner that a host's gates admitted a run; the second door says what they must stand for"},

	// Where facts are kept.
	"store":                   {"access admin audit bundle gate grant idempotency toolcall", "", true, "the union of what stores keep"},
	"store/internal/keep":     {"access admin audit bundle gate grant idempotency toolcall", "", true, "a base of stores: what is refused and how it is copied"},
	"store/internal/sqlstore": {"access admin audit bundle gate grant idempotency store store/internal/keep toolcall", "github.com/pressly/goose/v3", false, "a base of stores: the SQL that engines share, with its migrations"},
	"store/memstore":          {"access admin audit bundle gate grant idempotency store store/internal/keep toolcall", "", true, "for tests and for embedders who keep nothing"},
	"store/sqlite":            {"store store/internal/sqlstore", "github.com/pressly/goose/v3 golang.org/x/sys modernc.org/sqlite", false, "the only importer of the engine; it names its dialect to the migrations"},
	"store/postgres":          {"slot store store/internal/sqlstore", "github.com/jackc/pgx/v5 github.com/pressly/goose/v3", false, "the only importer of the driver; it names its dialect to the migrations"},
	"store/storetest":         {"access admin audit bundle gate grant idempotency store toolcall", "github.com/google/go-cmp", false, "a suite: it links testing"},

	"retention": {"access admin audit bundle gate grant store toolcall", "", true, "what is kept beside the log goes when its time is over, each with its entry"},
	"fsck":      {"access admin audit bundle gate grant retention store toolcall", "", true, "it compares what a store keeps with the log, and changes nothing"},

	// Skills.
	"skill":  {"bundle gate grant internal/strictyaml schema", "golang.org/x/sys", false, "a folder becomes a bundle and declarations"},
	"schema": {"bundle internal/strictjson", "github.com/santhosh-tekuri/jsonschema/v6", false, "the only importer of the JSON Schema library"},

	// How people and programs reach it.
	"serve/httpapi":         {". access admin audit audit/notary bundle gate grant idempotency internal/id internal/spool internal/strictjson internal/textdiff internal/turns serve/httpapi/client serve/internal/params serve/runs skill slot toolcall", "github.com/danielgtaylor/huma/v2", false, "the management API: it decides nothing that the gates decide, and names no concrete store"},
	"serve/httpapi/client":  {"bundle", "", false, "an API client carries nothing of the server: the wire types live here"},
	"serve/internal/params": {"serve/httpapi/client", "", false, "cursors and ETags: what strangers send, read in one place"},
	"serve/limit":           {"access", "golang.org/x/time", false, "what those who ask may take; it knows of no API"},
	"serve/runnerapi":       {". access bundle gate grant wire", "", false, "the runner service: it hands what comes to the second door, and decides nothing"},
	"serve/oidc":            {"access internal/outbound internal/strictjson", "github.com/coreos/go-oidc/v3", false, "who a token of an identity provider is; the only importer of its library"},

	"observe": {". gate", "go.opentelemetry.io/otel", false, "spans and metrics: the only importer of OpenTelemetry's API"},

	// Doors.
	"serve/runs": {". gate internal/id slot", "", true, "a base of doors: the runs of this process, which several doors start and follow"},

	// What a model sees.
	"serve/mcpserver": {"access gate grant internal/strictjson serve/runs skill slot toolset", "github.com/modelcontextprotocol/go-sdk", false, "the protocol over the tools: the only importer of its library"},
	"toolset":         {". bundle gate grant internal/strictjson skill", "", false, "the four tools as plain Go: no protocol, no door"},

	// Behind doors.
	"internal/archtest":    {"", "", true, "it reads the house from outside"},
	"internal/broker":      {"", "github.com/nats-io/nats-server/v2 github.com/nats-io/nkeys", false, "a NATS server within this process: the only importer of it"},
	"internal/cli":         {". access admin audit audit/notary bundle executor executor/interpreter fsck gate grant image image/oci image/registry internal/config internal/conformance internal/daemon internal/id internal/ownfile internal/spool internal/strictjson internal/textdiff internal/witness retention serve/httpapi/client skill toolcall", anyX + " github.com/spf13/cobra", false, "the verbs speak to what the daemon wires, or to a server, through the typed client"},
	"internal/config":      {"access bundle gate grant internal/strictyaml", "", false, "the file: parse, defaults, origins"},
	"internal/conformance": {"bundle executor executor/executortest executor/executortest/hostile executor/interpreter gate internal/id internal/outbound wire", "", false, "the suites against an executor or a runner that is deployed; no wing, so that a binary may hold it"},
	"internal/daemon":      {". access admin audit audit/notary bundle executor executor/container executor/container/engine executor/fleet executor/interpreter executor/microvm executor/microvm/kit executor/process executor/remote executor/sandbox fsck gate grant idempotency image image/oci image/registry internal/broker internal/config internal/id internal/instance internal/ownfile internal/spool internal/strictjson internal/telemetry internal/turns internal/witness observe retention schema serve/httpapi serve/httpapi/client serve/mcpserver serve/limit serve/oidc serve/runnerapi serve/runs skill slot store store/memstore store/postgres store/sqlite toolset wire wire/ticket", "golang.org/x/sys", false, "THE WIRING: the one room that names concrete stores and executors"},
	"internal/enginecase":  {"", "", true, "container engines apart from the machine's own, for tests and benchmarks"},
	"internal/execfile":    {"", "", true, "programs that tests write and execute at once"},
	"internal/faults":      {"", "", true, "it has tests alone: the real binary, under failing calls and kills"},
	"internal/gatecase":    {"access audit bundle gate grant internal/id store/memstore", "", true, "the denial table, for the tests of gate and of the runner"},
	"internal/holder":      {"", "", true, "whether the process that a lock's file names is dead, for the spine's locks too"},
	"internal/imagecase":   {"", "", true, "container images as builders pack them, for tests"},
	"internal/id":          {"", "", true, "ids are made in one place"},
	"internal/instance":    {"audit internal/holder internal/id internal/ownfile internal/strictjson", "", false, "how a host process tells the next one that it died"},
	"internal/mask":        {"", "", true, "what is known to be secret is found in one way, by the gate for all"},
	"internal/outbound":    {"", "", true, "who connects to an address that somebody else names does it by one rule"},
	"internal/ownfile":     {"internal/holder", "golang.org/x/sys", true, "small files of the program's own, durable"},
	"internal/pgserver":    {"", "", true, "a suite: a PostgreSQL of a package's own for its tests"},
	"internal/rootfs":      {"", "", true, "root file systems of this machine's programs, for tests"},
	"internal/hostcase":    {"executor/executortest/hostile executor/interpreter gate internal/threatmodel", "", false, "what runs leave on a host, and what is attacked with what, for the tests of the executors of this host"},
	"internal/runnercase":  {". audit executor executor/executortest executor/executortest/hostile executor/interpreter executor/process executor/sandbox gate serve/limit serve/runnerapi store/memstore", "", false, "a runner service in another process, for the tests of the executors that send scripts away"},
	"internal/spool":       {"bundle", "", true, "the files of a skill on disk while it is read"},
	"internal/strictjson":  {"", "github.com/go-json-experiment/json", false, "JSON behind one door"},
	"internal/strictyaml":  {"", "go.yaml.in/yaml/v4", false, "YAML behind one door"},
	"internal/threatmodel": {"internal/strictyaml", "", false, "what is promised against whom, and the page that is made of it"},
	"internal/toolcase":    {". admin audit bundle executor executor/interpreter executor/process gate grant schema skill store/memstore toolset", "", false, "a house with some skills, for the tests of what a model sees"},
	"internal/turns":       {"", "", true, "what is done by few at once is shared fairly, at the gates and before them"},
	"internal/witness":     {"audit internal/ownfile internal/strictjson", "", false, "cosigns checkpoints, and asks others to"},
	"internal/telemetry":   {"", "go.opentelemetry.io/otel github.com/prometheus/client_golang", false, "where spans and metrics go: the only importer of the SDK and the exporters"},
	"internal/textdiff":    {"", "github.com/aymanbagabas/go-udiff", false, "differences behind one door"},

	"bench":          {"", "", false, "it has tests alone"},
	"cmd/tracon":     {"internal/cli", "", false, "main is ten lines"},
	"examples/embed": {". access admin audit bundle executor executor/interpreter gate grant schema serve/httpapi serve/runs skill store/memstore", "", false, "what an embedder writes: public rooms alone, and the front door"},
}

// libraries is which room each library belongs to; the tests of that room may
// use it too. Golang.org/x is not here: the spine has it.
var libraries = map[string]string{
	"github.com/aymanbagabas/go-udiff":         "internal/textdiff",
	"github.com/containerd/errdefs":            "executor/container/engine", // the kinds of the client's errors
	"github.com/coreos/go-oidc/v3":             "serve/oidc",
	"github.com/danielgtaylor/huma/v2":         "serve/httpapi",
	"github.com/go-json-experiment/json":       "internal/strictjson",
	"github.com/jackc/pgx/v5":                  "store/postgres",
	"github.com/klauspost/compress":            "image/oci",
	"github.com/moby/moby/api":                 "executor/container/engine",
	"github.com/moby/moby/client":              "executor/container/engine",
	"github.com/nats-io/nats.go":               "executor/fleet",
	"github.com/nats-io/nkeys":                 "executor/fleet internal/broker", // users' keys; a server has their public halves
	"github.com/nats-io/nats-server/v2":        "internal/broker",
	"github.com/opencontainers/go-digest":      "image/registry", // the words that the client speaks in
	"github.com/opencontainers/image-spec":     "image/registry",
	"github.com/pressly/goose/v3":              "store/internal/sqlstore store/postgres store/sqlite", // the dialect is named where the engine is
	"github.com/santhosh-tekuri/jsonschema/v6": "schema",
	"github.com/spf13/cobra":                   "internal/cli",
	"github.com/prometheus/client_golang":      "internal/telemetry",
	"go.opentelemetry.io/otel":                 "observe internal/telemetry",
	"go.yaml.in/yaml/v4":                       "internal/strictyaml",
	"github.com/modelcontextprotocol/go-sdk":   "serve/mcpserver",
	"oras.land/oras-go/v2":                     "image/registry",
	"modernc.org/sqlite":                       "store/sqlite store/internal/sqlstore", // the latter in its tests
}

// testLibraries are what tests and suites may use, and nothing that is shipped.
var testLibraries = []string{"github.com/anishathalye/porcupine", "github.com/golang-jwt/jwt/v5", "github.com/google/go-cmp", "github.com/google/go-containerregistry", "github.com/oauth2-proxy/mockoidc", "github.com/pb33f/libopenapi", "github.com/pb33f/libopenapi-validator", "github.com/rogpeppe/go-internal", "go.uber.org/goleak", "pgregory.net/rapid"}

// suites are the rooms that are there for tests. Of them, a binary links those alone
// that an operator runs: see TestBinaryLinksNoTests.
var suites = []string{"executor/executortest", "executor/executortest/bare", "executor/executortest/hostile", "internal/enginecase", "internal/gatecase", "internal/hostcase", "internal/imagecase", "internal/rootfs", "internal/pgserver", "internal/runnercase", "internal/toolcase", "store/storetest"}

// bans are packages of the standard library that only some rooms may import.
// A name that ends in "/..." covers those below it.
var bans = map[string]struct{ rooms, why string }{
	"os/exec":        {"executor/... internal/enginecase internal/hostcase internal/pgserver internal/runnercase", "only executors start processes, and what serves tests"},
	"math/rand":      {"", "what is guessed from outside must come from crypto/rand"},
	"math/rand/v2":   {"", "what is guessed from outside must come from crypto/rand"},
	"unsafe":         {"executor/...", "memory is the compiler's"},
	"net/http/pprof": {"", "it registers itself with the default server"},
	"net/http":       {"examples/embed executor/container/engine executor/remote image/registry internal/cli internal/conformance internal/daemon internal/enginecase internal/outbound internal/telemetry internal/witness observe serve/...", "the doors to the network are those of serve; a witness must be elsewhere"},
	"net":            {"executor/container/engine executor/executortest/hostile executor/fleet internal/broker internal/cli internal/daemon internal/enginecase internal/outbound internal/witness serve/... store/postgres", "the doors to the network are those of serve; the hostile suite listens on loopback to see who comes, and a store tells by its errors that a connection was lost"},
	"encoding/gob":   {"", "its decoder is not made for what strangers send"},
	"testing":        {"internal/enginecase internal/gatecase internal/hostcase internal/pgserver internal/runnercase internal/toolcase store/storetest", "a binary does not link testing"},
	"database/sql":   {"store/...", "SQL is the stores'"},
	"runtime/debug":  {"internal/cli internal/daemon internal/hostcase", "the version comes from the build, and is read once; tests give memory back before they measure it"},
	"log":            {"examples/...", "log/slog, with what may be logged"},
	"crypto/md5":     {"", "digests are SHA-256"},
	"crypto/sha1":    {"", "digests are SHA-256"},
}
