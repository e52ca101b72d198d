package gate

import (
	"context"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// The compiler sees that each proof is handed to seal; that it is not the zero
// one of a refusal that was passed over, seal itself sees.
func TestSealRefusesZeroProofs(t *testing.T) {
	b, err := bundle.New([]bundle.File{{Path: "a.py"}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := audit.NewLog(&oneLeaf{}).Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Admission})
	if err != nil {
		t.Fatal(err)
	}
	type proofs struct {
		o open
		i interpreter
		t tier
		a arguments
		p pinned
		r audit.Receipt
	}
	whole := func() proofs {
		return proofs{
			open{tenant: "t"}, interpreter{extension: "py"}, tier{Standing{Tier: grant.Process}}, arguments{mode: Argv},
			pinned{content{bundle: b}, grant.Grant{ID: "g"}}, receipt,
		}
	}
	for name, change := range map[string]func(*proofs){
		"open": func(p *proofs) { p.o = open{} }, "interpreter": func(p *proofs) { p.i = interpreter{} }, "tier": func(p *proofs) { p.t = tier{} },
		"arguments": func(p *proofs) { p.a = arguments{} }, "grant": func(p *proofs) { p.p.grant = grant.Grant{} },
		"content": func(p *proofs) { p.p.content = content{} }, "receipt": func(p *proofs) { p.r = audit.Receipt{} },
	} {
		p := whole()
		change(&p)
		if req, err := seal(Call{}, p.o, p.i, p.t, p.a, p.p, p.r); err == nil || req.Valid() {
			t.Errorf("a zero %s is sealed", name)
		}
	}
	p := whole()
	if req, err := seal(Call{}, p.o, p.i, p.t, p.a, p.p, p.r); err != nil || !req.Valid() {
		t.Errorf("all proofs: %v", err)
	}
}

// pin refuses content that is not of the script that the grant was found for.
func TestPinIsOfTheSameScript(t *testing.T) {
	b, err := bundle.New([]bundle.File{{Path: "a.py"}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	h := held{safeName{"t", "s", "a.py", FileScript}, grant.Grant{ID: "g", Pin: b.Digest()}}
	for _, other := range []safeName{{}, {"u", "s", "a.py", FileScript}, {"t", "u", "a.py", FileScript}, {"t", "s", "b.py", FileScript}} {
		if p, err := h.pin(content{other, b}); err == nil || p.grant.ID != "" {
			t.Errorf("the content of %v is pinned", other)
		}
	}
}

// oneLeaf is a Sink for the first entry of a log.
type oneLeaf struct {
	audit.Sink
	leaf audit.Leaf
}

func (l *oneLeaf) Append(_ context.Context, p audit.Pending) (err error) {
	l.leaf, err = p.Seal(audit.Head{})
	return err
}
