package gate_test

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// All gates for a script of 4 KiB, with everything in memory: reading and
// hashing the skill, the schema, the log's entry.
func BenchmarkAdmit(b *testing.B) {
	h := gatecase.New(b)
	src := h.Skills.Of(gatecase.Skill)
	for i, f := range src.Files {
		if f.Path == h.Call.Script {
			src.Files[i].Data = []byte(strings.Repeat("x = 1\n", 4096/6))
		}
	}
	h.Grant(b, nil)
	g := gate.New(h.Config)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Admit(b.Context(), h.Call, h.Standing); err != nil {
			b.Fatal(err)
		}
	}
}

// A refusal costs no more than an admission, or refused calls would be a flood.
func BenchmarkRefuse(b *testing.B) {
	h := gatecase.New(b)
	h.Revoke(b, nil)
	g := gate.New(h.Config)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Admit(b.Context(), h.Call, h.Standing); err == nil {
			b.Fatal("it is admitted")
		}
	}
}
