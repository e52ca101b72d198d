package storetest

import (
	"context"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/idempotency"
)

// lefts ends the check when the process left other claims than those of these tenants
// and keys, in their order.
func (k *kit) lefts(what string, instance idempotency.Instance, limit int, want ...idempotency.Claim) {
	k.Helper()
	got, err := k.store.Left(k.Context(), instance, limit)
	k.must(err)
	for i := range want {
		want[i].Body, want[i].At = bundle.Digest{}, kept(want[i].At)
	}
	if len(got) != 0 || len(want) != 0 {
		k.same(what, got, want)
	}
}

func (k *kit) beginners(what string, want ...idempotency.Instance) {
	k.Helper()
	want = append(want, "")
	for i, after := 0, idempotency.Instance(""); i < len(want); i++ {
		got, err := k.store.Beginner(k.Context(), after)
		k.must(err)
		k.same(what, got, want[i])
		after = got
	}
}

func idempotencyLeft(k *kit) {
	by := func(tenant, key, run string, instance idempotency.Instance) idempotency.Claim {
		c := claimOf(tenant, key, "body", run)
		c.Instance = instance
		k.begins("a key", c, begun(run))
		return c
	}
	k.beginners("of none")
	admitted, free := by(alpha, "admitted", id(1), "dead"), by(alpha, "free", id(2), "dead")
	theirs := by(beta, "free", id(3), "dead")
	living := by(alpha, "living", id(4), "living")
	done := by(alpha, "done", id(5), "dead")
	by(alpha, "nobody's", id(6), "")
	k.must(k.store.Finish(k.Context(), alpha, done.Key, done.Run, []byte("answer")))

	k.lefts("of the dead, by tenant and key", "dead", 0, theirs, admitted, free)
	k.lefts("the first", "dead", 1, theirs)
	k.lefts("of the living", "living", 0, living)
	k.lefts("of nobody", "", 0)
	k.lefts("of another", "deaf", 0)
	k.beginners("those who began", "dead", "living")
	if _, err := k.store.Left(k.Context(), "dead", -1); err == nil {
		k.broken("a negative limit is no error")
	}

	asked := 0
	log := func(_ context.Context, tenant, run string) (bool, error) {
		asked++
		return tenant == alpha && run == id(1), nil
	}
	for _, want := range [][2]int{{2, 1}, {0, 0}} {
		freed, closed, err := idempotency.Recover(k.Context(), k.store, "dead", log)
		k.must(err)
		if freed != want[0] || closed != want[1] || asked != 3 {
			k.broken("%d keys were freed and %d closed, with %d looks into the log; want %v, and 3", freed, closed, asked, want)
		}
	}
	k.begins("what was admitted", claimOf(alpha, "admitted", "body", id(9)), idempotency.Found{State: idempotency.Done, Run: id(1), Begun: at})
	k.begins("what was not", claimOf(alpha, "free", "body", id(9)), begun(id(9)))
	k.begins("what was not, of the other tenant", claimOf(beta, "free", "another body", id(9)), begun(id(9)))
	k.begins("what a living one began", claimOf(alpha, "living", "body", id(9)), running(id(4)))
	k.begins("what nobody began", claimOf(alpha, "nobody's", "body", id(9)), running(id(6)))
	k.wants(k.store.Finish(k.Context(), alpha, "free", id(2), nil), idempotency.ErrGone, "the dead finishing what was freed")
	k.beginners("those who began, afterwards", "living")
}
