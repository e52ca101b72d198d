package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tracon-go/tracon/wire"
)

// liveTime is the time of a request whose output is shown.
const liveTime = 3 * time.Minute

// slowTime is for how long the program that is slow sleeps.
const slowTime = time.Minute

// errSeen ends a request of which enough was seen.
var errSeen = errors.New("conformance: enough was seen")

// live sends the run and asks to be shown its output: each is called with every piece,
// which is of the wire's form. What each returns ends the request.
func (a *asking) live(run wire.Run, each func(wire.Output) error) (wire.Answer, error) {
	body, err := run.Encode()
	if err != nil {
		return wire.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, liveTime)
	defer cancel()
	req, err := a.r.request(ctx, http.MethodPost, "runs", body, a.r.Key)
	if err != nil {
		return wire.Answer{}, err
	}
	req.Header.Set("Accept", wire.LiveType+", application/json")
	client := *a.r.client
	client.Timeout = 0
	res, err := client.Do(req)
	if err != nil {
		return wire.Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 {
		text, err := io.ReadAll(res.Body)
		return wire.Answer{}, errors.Join(fmt.Errorf("status %d: %.200q", res.StatusCode, text), err)
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != wire.LiveType {
		return wire.ReadAnswer(res.Body, 0) // it had nothing to show
	}
	frames := wire.NewFrames(res.Body, 0)
	var at int64
	for {
		f, err := frames.Next()
		if err != nil {
			return wire.Answer{}, fmt.Errorf("the frame at %d bytes of output: %w", at, err)
		}
		o := f.Output
		switch {
		case f.Problem != nil:
			return wire.Answer{}, fmt.Errorf("the problem %.80q, %.200q", f.Problem.Code, f.Problem.Detail)
		case f.Answer != nil:
			if _, err := frames.Next(); err != io.EOF {
				return wire.Answer{}, fmt.Errorf("behind the answer: %w", err)
			}
			return *f.Answer, nil
		case o.ID != run.More.ID || o.Offset < at || o.Offset == at && len(o.Data) == 0:
			return wire.Answer{}, fmt.Errorf("a piece of %d bytes of the run %.40q at %d, behind %d bytes", len(o.Data), o.ID, o.Offset, at)
		}
		at = o.Offset + int64(len(o.Data))
		if err := each(*o); err != nil {
			return wire.Answer{}, err
		}
	}
}

// liveRules are those of a runner that says that it can show output before the end.
var liveRules = []runnerRule{
	{"live output", "tracon-live/1: what a script writes is shown while it runs", func(a *asking) error {
		run, _, err := a.more(a.program.slow)
		if err != nil {
			return err
		}
		run.TimeoutSeconds = 2 * slowTime.Seconds()
		if most := a.r.Info.Limits.TimeoutSeconds; most > 0 {
			run.TimeoutSeconds = min(run.TimeoutSeconds, most)
		}
		sent, text := time.Now(), ""
		_, err = a.live(run, func(o wire.Output) error {
			if text += string(o.Data); o.Stream == wire.Stdout && text == "so far" {
				return errSeen // and nobody waits for the script any more
			}
			return nil
		})
		switch took := time.Since(sent); {
		case !errors.Is(err, errSeen):
			return errors.Join(fmt.Errorf("saw %.80q before the end", text), err)
		case took >= min(slowTime, run.Timeout()):
			return fmt.Errorf("it was shown after %v, when the script was over", took.Round(time.Second))
		}
		return nil
	}},
	{"live answer", "tracon-live/1, M01: the answer is whole, whatever was shown, and nothing was shown that it has not", func(a *asking) error {
		run, _, err := a.more(a.program.echo)
		if err != nil {
			return err
		}
		run.StandardInput, run.More.Mode = "in", "stdin"
		shown := map[string]string{}
		got, err := a.live(run, func(o wire.Output) error { shown[o.Stream] += string(o.Data); return nil })
		if err != nil {
			return err
		}
		if !strings.HasPrefix("in", shown[wire.Stdout]) || !strings.HasPrefix("err", shown[wire.Stderr]) {
			return fmt.Errorf("it showed %.80q and %.80q", shown[wire.Stdout], shown[wire.Stderr])
		}
		if got.More == nil || got.More.ID != run.More.ID {
			return errors.New("the answer is not of the run")
		}
		return expect(got, 7, "in", "err")
	}},
	{"live limit", "tracon-live/1, R19: no more of a stream is shown than maxOutputBytes", func(a *asking) error {
		run, _, err := a.more(a.program.loud)
		if err != nil {
			return err
		}
		run.MaxOutputBytes = 1000
		var shown bytes.Buffer
		got, err := a.live(run, func(o wire.Output) error { _, err := shown.Write(o.Data); return err })
		if err == nil && (shown.Len() > 1000 || strings.Trim(shown.String(), "x") != "" || len(got.StandardOutput) != 1000 || !got.Truncated) {
			err = fmt.Errorf("it showed %d bytes, and answers with %d, truncated %t; want at most 1000, and 1000, truncated", shown.Len(), len(got.StandardOutput), got.Truncated)
		}
		return err
	}},
}
