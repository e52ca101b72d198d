package mcpserver

import (
	"net/http"
	"strings"
)

// plain stands before the library, which refuses what it cannot take in a line of plain
// text: those are written as the host writes what it refuses. Anything else passes, errors
// of JSON-RPC too.
type plain struct {
	http.ResponseWriter
	status int // of a refusal; zero: none yet
	detail strings.Builder
}

// mostDetail is what is kept of a refusal: the library may say back what it was sent.
const mostDetail = 512

// Unwrap lets http.ResponseController through.
func (p *plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader keeps a refusal in plain text back.
func (p *plain) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write takes a part of the answer.
func (p *plain) Write(b []byte) (int, error) {
	if p.status == 0 {
		return p.ResponseWriter.Write(b)
	}
	p.detail.Write(b[:min(len(b), mostDetail-min(mostDetail, p.detail.Len()))])
	return len(b), nil
}

// refuse writes what was kept back, if anything was.
func (h *Handler) refuse(p *plain, r *http.Request) {
	if p.status == 0 {
		return
	}
	p.Header().Del("Content-Type")
	detail := strings.TrimSpace(strings.ToValidUTF8(p.detail.String(), "\uFFFD"))
	if p.status >= 500 {
		h.c.Logger.Error("the protocol's library failed", "status", p.status, "detail", detail)
		p.status, detail = http.StatusInternalServerError, "this failed here; try again later"
	}
	h.c.Refuse(p.ResponseWriter, r, p.status, detail)
}
