package notary_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/store/memstore"
)

// A host signs its log, and gives the receipt of an entry to whom it concerns, who
// can check it without the log.
func Example() {
	ctx := context.Background()
	data, err := os.MkdirTemp("", "notary")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(data)
	l := audit.NewLog(memstore.New())
	n, err := notary.New(notary.Config{Log: l, Data: data, Tenant: "@host"})
	if err != nil {
		log.Fatal(err)
	}
	if err := n.Check(ctx); err != nil { // nothing runs where this fails
		log.Fatal(err)
	}
	r, err := l.Append(ctx, audit.Entry{Tenant: "acme", Actor: "agent", Kind: audit.Admission, Subject: "unit-converter scripts/convert.py"})
	if err != nil {
		log.Fatal(err)
	}
	proof, err := n.Prove(ctx, r.Index()) // tracon.Config has a field for n: each Outcome holds its proof then
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := proof.MarshalText()
	if err != nil {
		log.Fatal(err)
	}

	keys, err := n.Keys() // kept by whoever checks
	if err != nil {
		log.Fatal(err)
	}
	checked, err := audit.OpenProof(receipt, keys...)
	if err != nil {
		log.Fatal(err)
	}
	e, _, err := checked.Entry()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("entry %d: %s, %s by %s\n", checked.Index, e.Kind, e.Subject, e.Actor)
	// Output: entry 1: admission, unit-converter scripts/convert.py by agent
}
