package storetest

import (
	"context"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

// commitCtx makes change with an entry of tenant, under ctx.
func (k *kit) commitCtx(ctx context.Context, tenant string, change func(context.Context, audit.Pending) error) error {
	_, err := k.log.Commit(ctx, entry(tenant, audit.Keeping, "retention"), change)
	return err
}

func (k *kit) eraseCalls(tenant string, remove, strip []string) error {
	return k.commitCtx(k.Context(), tenant, func(ctx context.Context, p audit.Pending) error {
		return k.store.EraseCalls(ctx, tenant, remove, strip, p)
	})
}

func (k *kit) eraseContents(contents ...store.Expired) error {
	return k.commitCtx(k.Context(), hostTenant, func(ctx context.Context, p audit.Pending) error {
		return k.store.EraseContents(ctx, contents, p)
	})
}

func eraseCalls(k *kit) {
	for i := range 6 {
		k.must(k.addCall(record(alpha, id(i))))
		k.must(k.addCall(record(beta, id(i))))
	}
	n := k.size()
	for _, lists := range [][2][]string{{{id(1), "none"}, nil}, {nil, {id(1), "none"}}, {{id(1), id(1)}, nil}, {{id(1)}, {id(1)}}} {
		k.wants(k.eraseCalls(alpha, lists[0], lists[1]), grant.ErrConflict, "erasing %v and the details of %v", lists[0], lists[1])
	}
	if got := k.size(); got != n {
		k.broken("what was refused grew the log from %d to %d entries", n, got)
	}
	k.must(k.eraseCalls(alpha, []string{id(0), id(3)}, []string{id(1), id(5)}))
	if got := k.size(); got != n+1 {
		k.broken("the log has %d entries, want %d", got, n+1)
	}
	list, err := k.store.Calls(k.Context(), alpha, anyCall)
	k.must(err)
	var want []toolcall.Record
	for _, i := range []int{5, 4, 2, 1} {
		r := record(alpha, id(i))
		r.Admitted, r.Ended = kept(r.Admitted), kept(r.Ended)
		if i == 1 || i == 5 {
			r = r.WithoutDetails()
		}
		want = append(want, r)
	}
	k.same("the records that are left", list, want)
	_, err = k.store.Call(k.Context(), alpha, id(3))
	k.wants(err, toolcall.ErrNotFound, "an erased record")
	if list, err = k.store.Calls(k.Context(), beta, anyCall); err != nil || len(list) != 6 || !list[0].HasDetails() {
		k.broken("of 6 records of another tenant there are %d, error %v", len(list), err)
	}
}

func eraseContents(k *kit) {
	c, d := content("c"), content("d") // they share files
	g := k.grant(id(1), script(alpha, "scripts/a.py"), c)
	k.must(k.addVersion(versionOf(alpha, id(1), "s", c), c, ""))
	k.must(k.addVersion(versionOf(beta, id(1), "s", d), d, ""))
	n := k.size()
	for _, e := range []store.Expired{{Digest: c.Digest(), Named: 1}, {Digest: c.Digest(), Named: 3}, {Digest: content("none").Digest()}} {
		k.wants(k.eraseContents(store.Expired{Digest: d.Digest(), Named: 1}, e), grant.ErrConflict, "erasing %+v", e)
	}
	if got := k.size(); got != n {
		k.broken("what was refused grew the log from %d to %d entries", n, got)
	}
	whole := func(tenant string, b bundle.Bundle) {
		k.Helper()
		got, err := k.store.Content(k.Context(), tenant, b.Digest())
		k.must(err)
		k.same("the content", got.Files(), b.Files())
	}
	whole(beta, d)
	k.must(k.eraseContents(store.Expired{Digest: c.Digest(), Named: 2}))
	_, err := k.store.Content(k.Context(), alpha, c.Digest())
	k.wants(err, grant.ErrNotFound, "an erased content")
	_, err = k.store.Files(k.Context(), alpha, c.Digest())
	k.wants(err, grant.ErrNotFound, "the files of an erased content")
	_, _, err = k.store.Imported(k.Context(), alpha, "s")
	k.wants(err, grant.ErrNotFound, "a skill whose content was erased")
	whole(beta, d)
	k.wants(k.eraseContents(store.Expired{Digest: c.Digest(), Named: 2}), grant.ErrConflict, "erasing it again")
	if got := k.newest(g.Ref); got.Pin != c.Digest() {
		k.broken("the grant is gone with its content")
	}
	v, err := k.store.Survey(k.Context())
	k.must(err)
	for digest, err := range v.Contents(k.Context()) {
		k.must(err)
		if digest != d.Digest() {
			k.broken("the survey has the content %s", digest)
		}
	}
	k.must(v.Close())
	// Who grants it again has it again.
	k.grant(id(2), script(alpha, "scripts/a.py"), c)
	whole(alpha, c)
	whole(beta, d)
}
