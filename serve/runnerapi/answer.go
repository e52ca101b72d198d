package runnerapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// wantsLive reports whether whoever sent r takes an answer that shows output.
func wantsLive(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(v, ",") {
			name, params, err := mime.ParseMediaType(kind)
			if err != nil || name != wire.LiveType {
				continue
			}
			q, err := strconv.ParseFloat(params["q"], 64)
			if params["q"] == "" || err == nil && q > 0 {
				return true
			}
		}
	}
	return false
}

// A showed is an answer that shows output. Until its first piece nothing of it is sent,
// and the answer can be any.
type showed struct {
	w     http.ResponseWriter
	begun bool
	err   error // whoever does not take a piece in time has no more of it
}

func (a *showed) output(o wire.Output) { a.frame(wire.Frame{Output: &o}) }

func (a *showed) frame(f wire.Frame) {
	if a.err != nil {
		return
	}
	var line []byte
	if line, a.err = f.Encode(); a.err != nil {
		return
	}
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", wire.LiveType)
		a.w.WriteHeader(http.StatusOK)
	}
	if _, a.err = a.w.Write(line); a.err == nil {
		a.err = http.NewResponseController(a.w).Flush()
	}
}

// refuse ends the answer, or is it.
func (a *showed) refuse(p wire.Problem) {
	if a.begun {
		a.frame(wire.Frame{Problem: &p})
		return
	}
	refuse(a.w, p)
}

// answer makes the run that r asks for, and answers.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, peer gate.Peer, run wire.Run) {
	to := &showed{w: w}
	var show func(wire.Output)
	if wantsLive(r) {
		show = to.output
	}
	a, err := s.Run(r.Context(), peer, run, bundle.Bundle{}, show)
	if err != nil {
		p := s.Problem(run, err)
		p.NotStarted = p.NotStarted && !to.begun // somebody has seen what it wrote
		s.c.Logger.Warn("a delivered run has no answer", "peer", peer.Name, "code", p.Code, "run", p.ID, "notStarted", p.NotStarted, "err", err)
		to.refuse(p)
		return
	}
	b, err := a.Encode()
	switch {
	case err != nil:
		s.c.Logger.Error("an answer could not be written", "peer", peer.Name, "err", err)
		to.refuse(wire.Problem{Status: http.StatusInternalServerError, Code: "unknown", Detail: "the runner failed"})
	case to.begun:
		to.frame(wire.Frame{Answer: &a})
	default:
		send(w, http.StatusOK, b)
	}
}
