package wire_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/wire"
)

const (
	anOutput  = `{"output":{"id":"i","stream":"stdout","offset":0,"data":"aGk="}}` + "\n"
	anAnswer  = `{"answer":{"exitCode":1,"standardOutput":"hi","standardError":""}}` + "\n"
	aProblem  = `{"problem":{"status":500,"code":"executor_failed"}}` + "\n"
	mostFrame = 3000
)

// readFrames reads frames until one is none.
func readFrames(r io.Reader) (list []wire.Frame, err error) {
	frames := wire.NewFrames(r, mostFrame)
	for {
		f, err := frames.Next()
		if err != nil {
			return list, err
		}
		list = append(list, f)
	}
}

// M01, M02, R29: an answer that shows output is pieces and one end, each a line of one
// kind, within its bounds; anything else is none.
func TestFrames(t *testing.T) {
	output := func(change ...string) string { return strings.NewReplacer(change...).Replace(anOutput) }
	for _, tt := range []struct {
		name, text string
		frames     int
		want       error
	}{
		{"output and the answer", anOutput + anOutput + anAnswer, 3, io.EOF},
		{"the answer alone", anAnswer, 1, io.EOF},
		{"a problem", anOutput + aProblem, 2, io.EOF},
		{"in another case, with more", strings.ToUpper(`{"output":{"later":[1],"id":"i","stream":`) + `"stderr","offset":5,"data":""}}` + "\n" + anAnswer, 2, io.EOF},
		{"nothing", "", 0, io.ErrUnexpectedEOF},
		{"no end", anOutput, 1, io.ErrUnexpectedEOF},
		{"a line without its end", anOutput + strings.TrimSuffix(anAnswer, "\n"), 1, io.ErrUnexpectedEOF},
		{"output behind the end", anAnswer + anOutput, 1, wire.ErrMalformed},
		{"two ends", anAnswer + anAnswer, 1, wire.ErrMalformed},
		{"a blank behind the end", anAnswer + " ", 1, wire.ErrMalformed},
		{"an empty line", "\n" + anAnswer, 0, wire.ErrMalformed},
		{"two in one line", strings.TrimSuffix(anOutput, "\n") + anAnswer, 0, wire.ErrMalformed},
		{"two kinds at once", `{"output":{"id":"i","stream":"stdout"},"problem":{"code":"x"}}` + "\n", 0, wire.ErrMalformed},
		{"an answer and a problem", `{"answer":{"exitCode":1,"standardOutput":"","standardError":""},"problem":{"code":"x"}}` + "\n", 0, wire.ErrMalformed},
		{"no kind that is known", `{"later":{}}` + "\n", 0, wire.ErrMalformed},
		{"a kind twice", `{"output":{"id":"i","stream":"stdout"},"Output":{"id":"i","stream":"stdout"}}` + "\n", 0, wire.ErrMalformed},
		{"an answer as it comes without frames", `{"exitCode":1,"standardOutput":"","standardError":""}` + "\n", 0, wire.ErrMalformed},
		{"an answer that is none", `{"answer":{"standardOutput":"","standardError":""}}` + "\n", 0, wire.ErrMalformed},
		{"a problem without a code", `{"problem":{"status":500}}` + "\n", 0, wire.ErrMalformed},
		{"no run", output(`"i"`, `""`), 0, wire.ErrMalformed},
		{"a run of a long name", output(`"i"`, `"`+strings.Repeat("i", wire.MaxName+1)+`"`), 0, wire.ErrMalformed},
		{"a stream that is none", output("stdout", "stdin"), 0, wire.ErrMalformed},
		{"an offset below zero", output(`:0`, `:-1`), 0, wire.ErrMalformed},
		{"an offset of petabytes", output(`:0`, `:1e15`), 0, wire.ErrMalformed},
		{"data that is no base64", output("aGk=", "aGk"), 0, wire.ErrMalformed},
		{"a piece too large", output("aGk=", strings.Repeat("aGkh", wire.MaxPiece/3+1)), 0, wire.ErrMalformed},
		{"a small piece in a large line", strings.Repeat(" ", 100<<10) + anOutput, 0, wire.ErrTooLarge},
		{"an answer too large", strings.Replace(anAnswer, "hi", strings.Repeat("x", 100<<10), 1), 0, wire.ErrTooLarge},
		{"a line without end", strings.Repeat("x", 200<<10), 0, wire.ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFrames(strings.NewReader(tt.text))
			if !errors.Is(err, tt.want) || len(got) != tt.frames {
				t.Errorf("got %d frames and error %v, want %d and %v", len(got), err, tt.frames, tt.want)
			}
		})
	}
	if _, err := readFrames(io.MultiReader(strings.NewReader(anOutput), errReader{})); !errors.Is(err, errBroken) {
		t.Errorf("a connection that breaks: got %v", err)
	}
}

var errBroken = errors.New("broken")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// A frame comes out as it went in; one of no kind, or of two, is not sent.
func TestFramesTravel(t *testing.T) {
	code := 0
	answer := wire.Answer{ExitCode: &code, StandardOutput: "<&>\n", More: &wire.AnswerMore{ID: "i", Bundle: "b", Ending: wire.Ending{Kind: "exited"}, StandardOutput64: []byte("\xff")}}
	in := []wire.Frame{
		{Output: &wire.Output{ID: strings.Repeat("\x01", wire.MaxName), Stream: wire.Stdout, Data: bytes.Repeat([]byte{0xff}, wire.MaxPiece)}},
		{Output: &wire.Output{ID: "i", Stream: wire.Stderr, Offset: wire.MaxPiece, Data: []byte("\n")}},
		{Answer: &answer},
	}
	var text []byte
	for _, f := range in {
		line, err := f.Encode()
		if err != nil || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("got %d line ends, %v", bytes.Count(line, []byte("\n")), err)
		}
		text = append(text, line...)
	}
	if out, err := readFrames(bytes.NewReader(text)); err != io.EOF || !reflect.DeepEqual(in, out) {
		t.Errorf("got %d frames and %v, want those that were sent", len(out), err)
	}
	for name, f := range map[string]wire.Frame{"none": {}, "two": {Output: in[1].Output, Answer: &answer}, "no run": {Output: &wire.Output{Stream: wire.Stdout}},
		"an answer that is none": {Answer: &wire.Answer{}}} {
		if _, err := f.Encode(); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if (wire.Info{Protocols: []string{wire.ProtocolLive}}).Shows() || !(wire.Info{Protocols: []string{wire.Protocol, wire.ProtocolLive}}).Shows() {
		t.Error("a runner shows output when it knows both protocols")
	}
}

// M02: whatever comes, pieces come before one end, and each is of the wire's form.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(anOutput + anAnswer))
	f.Add([]byte(anOutput + aProblem + "x"))
	f.Add([]byte(`{"OUTPUT":{}}` + "\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := readFrames(bytes.NewReader(text))
		ends := 0
		for i, frame := range list {
			if frame.Output == nil {
				ends++
				if i != len(list)-1 {
					t.Error("M01: something comes behind the end")
				}
			}
			line, err := frame.Encode()
			if err != nil {
				t.Fatalf("it was read, and cannot be written: %v", err)
			}
			if again, err := wire.NewFrames(bytes.NewReader(line), 0).Next(); err != nil || !reflect.DeepEqual(frame, again) {
				t.Errorf("it comes back as another: %v", err)
			}
		}
		if (err == io.EOF) != (ends == 1) && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%d ends, and error %v", ends, err)
		}
	})
}
