package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/wire"
)

// Bounds of what is said.
const (
	// MaxPayload is what a server must let pass in one message: 8 MB.
	MaxPayload = 8 << 20
	chunkSize  = 1 << 20 // bytes of a part of a run, of a closure or of an answer
	maxMessage = 64 << 10
	maxAnswer  = wire.MaxAnswer
	maxRun     = wire.MaxRun
	maxClosure = 96 << 20 // bytes of a closure's JSON: 32 MiB in base64, and more where limits are raised
)

// ErrMessage is wrapped by the error for a message that is not of this form.
var ErrMessage = errors.New("fleet: malformed message")

// An offer asks for a place.
type offer struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Tenant  string `json:"tenant"`
	Bundle  string `json:"bundle"`
}

// A place is the answer to an offer: where the run goes. With a code there is none.
type place struct {
	Runner string `json:"runner"`
	Member string `json:"member"` // the process: a name may be taken by two
	Lacks  bool   `json:"lacks"`  // the closure
	Code   string `json:"code,omitempty"`
}

// A begin starts what was handed over. One that has the run within it is its JSON, and
// has the rest in headers.
type begin struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	SHA256  string `json:"sha256"` // of the run's JSON
}

// Kinds of events, from the runner to the control plane.
const (
	kindBegun   = "begun"   // the run was received, and is not over yet
	kindBeat    = "beat"    // it goes on
	kindOutput  = "output"  // what the script writes, where the control plane asked for it; never acknowledged
	kindAnswer  = "answer"  // Size bytes: within the message, or to be asked for
	kindProblem = "problem" // there is no answer: a wire.Problem
)

// Headers of a message whose body is bytes.
const (
	headKind    = "Tracon-Kind"
	headRun     = "Tracon-Run"
	headSession = "Tracon-Session"
	headMember  = "Tracon-Member"
	headPart    = "Tracon-Part"   // "run" or "bundle"
	headOffset  = "Tracon-Offset" // of the chunk
	headSize    = "Tracon-Size"   // of the whole
	headSHA256  = "Tracon-SHA256" // of the whole
	headStream  = "Tracon-Stream" // of an output: as in [wire.Output]

	// headWhole stands at a place whose runner takes the run within its begin. One of
	// before has the run handed over first.
	headWhole = "Tracon-Whole"

	// headLive stands at a place whose runner can tell of output, and at the begin of a
	// control plane that wants it. It is a header so that a peer that does not know it
	// reads the message as ever.
	headLive = "Tracon-Live"
	yes      = "1" // of both
)

// An event is what a runner tells of a run.
type event struct {
	kind, run string
	size      int64
	sha256    string
	stream    string // of an output
	offset    int64  // of an output
	body      []byte
}

func (e event) message(subject string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set(headKind, e.kind)
	m.Header.Set(headRun, e.run)
	switch e.kind {
	case kindAnswer:
		m.Header.Set(headSize, strconv.FormatInt(e.size, 10))
		m.Header.Set(headSHA256, e.sha256)
	case kindOutput:
		m.Header.Set(headStream, e.stream)
		m.Header.Set(headOffset, strconv.FormatInt(e.offset, 10))
	}
	m.Data = e.body
	return m
}

// readEvent reads what a runner sent. It trusts nothing of it.
func readEvent(h nats.Header, body []byte) (event, error) {
	e := event{kind: h.Get(headKind), run: h.Get(headRun), body: body}
	switch e.kind {
	case kindBegun, kindBeat:
		return e, nil
	case kindProblem:
		if len(body) > maxMessage {
			return e, fmt.Errorf("%w: a problem of %d bytes", ErrMessage, len(body))
		}
		return e, nil
	case kindOutput:
		var err error
		e.stream = h.Get(headStream)
		if e.offset, err = number(h.Get(headOffset), math.MaxInt64); err != nil {
			return e, err
		}
		return e, e.output().Check()
	case kindAnswer:
		var err error
		if e.size, err = number(h.Get(headSize), maxAnswer); err != nil {
			return e, err
		}
		if e.sha256 = h.Get(headSHA256); len(e.sha256) != 2*sha256.Size {
			return e, fmt.Errorf("%w: an answer without its digest", ErrMessage)
		}
		if len(body) != 0 && int64(len(body)) != e.size {
			return e, fmt.Errorf("%w: an answer of %d bytes says that it has %d", ErrMessage, len(body), e.size)
		}
		return e, nil
	}
	return e, fmt.Errorf("%w: an event of kind %.40q", ErrMessage, e.kind)
}

// output is what an event of that kind shows.
func (e event) output() wire.Output {
	return wire.Output{ID: e.run, Stream: e.stream, Offset: e.offset, Data: e.body}
}

// A chunk is a piece of a run or of a closure.
type chunk struct {
	session, part string
	offset, size  int64
	data          []byte
}

const (
	partRun    = "run"
	partBundle = "bundle"
)

func readChunk(h map[string][]string, body []byte) (chunk, error) {
	get := nats.Header(h).Get
	c := chunk{session: get(headSession), part: get(headPart), data: body}
	most := int64(maxRun)
	switch c.part {
	case partRun:
	case partBundle:
		most = maxClosure
	default:
		return c, fmt.Errorf("%w: a part %.40q", ErrMessage, c.part)
	}
	var err error
	if c.size, err = number(get(headSize), most); err != nil {
		return c, err
	}
	if c.offset, err = number(get(headOffset), most); err != nil {
		return c, err
	}
	if len(body) == 0 || len(body) > chunkSize || c.offset+int64(len(body)) > c.size {
		return c, fmt.Errorf("%w: a chunk of %d bytes at %d of %d", ErrMessage, len(body), c.offset, c.size)
	}
	return c, nil
}

// number reads a whole number from 0 to most, in one form alone.
func number(s string, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%w: %.40q is not a number from 0 to %d", ErrMessage, s, most)
	}
	return n, nil
}

// decode reads a small message.
func decode(body []byte, v any) error {
	if len(body) > maxMessage {
		return fmt.Errorf("%w: %d bytes", ErrMessage, len(body))
	}
	if err := strictjson.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

// encode writes what is ours, which always can be.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fleet: " + err.Error())
	}
	return b
}

// closure is how the files of a bundle travel.
type closure struct {
	Files       []wire.File `json:"files"`
	Declaration []byte      `json:"declaration,omitempty"`
}

func encodeClosure(b bundle.Bundle) []byte {
	return encode(closure{wire.FilesOf(b.Files()), b.Declaration()})
}

// readClosure returns the bundle, whose digest must be want.
func readClosure(body []byte, want string, limits bundle.Limits) (bundle.Bundle, error) {
	var c closure
	if err := strictjson.Unmarshal(body, &c); err != nil {
		return bundle.Bundle{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	b, err := bundle.New(wire.Files(c.Files), c.Declaration, limits)
	if err != nil {
		return bundle.Bundle{}, err
	}
	if b.Digest().String() != strings.ToLower(want) {
		return bundle.Bundle{}, fmt.Errorf("%w: the closure has another digest than was offered", ErrMessage)
	}
	return b, nil
}

// message is the begin to the subject; whole, if it is not nil, is the run.
func (b begin) message(subject string, whole []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	if whole == nil {
		m.Data = encode(b)
		return m
	}
	m.Header.Set(headSession, b.Session)
	m.Header.Set(headRun, b.Run)
	m.Header.Set(headSHA256, b.SHA256)
	m.Data = whole
	return m
}

// readBegin reads a begin, and the run where it is within it.
func readBegin(h map[string][]string, body []byte) (b begin, whole []byte, err error) {
	get := nats.Header(h).Get
	if b.Session = get(headSession); b.Session == "" {
		return b, nil, decode(body, &b)
	}
	b.Run, b.SHA256 = get(headRun), get(headSHA256)
	if len(body) == 0 || len(body) > chunkSize {
		return b, nil, fmt.Errorf("%w: a run of %d bytes within its begin", ErrMessage, len(body))
	}
	return b, body, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
