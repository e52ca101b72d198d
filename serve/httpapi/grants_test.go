package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A grant's life over the API: reviewed, granted, changed, refused without the new
// digest (B11), replaced, revoked once.
func TestGrants(t *testing.T) {
	h := newHouse(t)
	digest := h.importSkill("acme", script)
	grants := "/v1/grants"
	want := client.NewGrant{Skill: "greeter", Script: "scripts/hello.py", Digest: digest, MinTier: "process", Reason: "reviewed"}

	var made, got client.Grant
	r := h.ask("approver", "POST", grants, want).into(http.StatusCreated, &made)
	if made.Ref.Tenant != "acme" || made.Pin != digest || made.State != "in force" || made.GrantedBy != "approver at acme" {
		t.Errorf("granted %+v", made)
	}
	one := h.ask("reader", "GET", grants+"/"+made.ID, nil).into(200, &got)
	if got != made || one.header.Get("ETag") != r.header.Get("ETag") || r.header.Get("ETag") == "" {
		t.Errorf("got %+v, tag %s", got, one.header.Get("ETag"))
	}

	fresh := h.importSkill("acme", script+"# changed\n")
	p := h.ask("approver", "POST", grants, want).problem(client.ContentChanged)
	if strings.Contains(fmt.Sprint(p), fresh.Hex()) {
		t.Errorf("who learns the new digest here could grant it unseen: %+v", p)
	}
	want.Digest = fresh
	h.ask("approver", "POST", grants, want).problem(client.ContentPinned)
	want.Replace = true
	h.ask("approver", "POST", grants, want).into(http.StatusCreated, &got)
	newer := got.ID
	var page client.Page[client.Grant]
	h.ask("reader", "GET", grants, nil).into(200, &page)
	h.ask("reader", "GET", grants+"/"+made.ID, nil).into(200, &got)
	if len(page.Items) != 2 || page.Items[0].ID != newer || page.Items[0].State != "in force" || page.Items[1].State != "replaced" || got.State != "replaced" {
		t.Errorf("case 45: of a reference the newest grant decides; got %+v and %+v", page.Items, got)
	}

	revoke := grants + "/" + made.ID + "/revoke"
	h.ask("approver", "POST", revoke, client.Revocation{Reason: "over"}).problem(client.PreconditionRequired)
	h.ask("approver", "POST", revoke, nil, "If-Match", `"00"`).problem(client.PreconditionFailed)
	h.ask("approver", "POST", revoke, client.Revocation{Reason: "over"}, "If-Match", one.header.Get("ETag")).into(200, &got)
	if got.State != "revoked" || got.RevokedBy != "approver at acme" {
		t.Errorf("revoked %+v", got)
	}
	h.ask("approver", "POST", revoke, nil, "If-Match", one.header.Get("ETag")).problem(client.PreconditionFailed)
	h.ask("approver", "POST", revoke, nil, "If-Match", "*").problem(client.Conflict)
}

// A list goes on where its cursor says, each row once; a cursor of another list is
// refused (T02).
func TestGrantsInParts(t *testing.T) {
	h := newHouse(t)
	var want []string
	for range 5 {
		g := h.grant("acme")
		want = append([]string{g.ID}, want...)
	}
	theirs := h.grant("globex")
	var got []string
	next := ""
	for range 4 {
		var page client.Page[client.Grant]
		h.ask("reader", "GET", "/v1/grants?limit=2&cursor="+next, nil).into(200, &page)
		for _, g := range page.Items {
			got = append(got, g.ID)
		}
		if next = page.Next; next == "" {
			break
		}
		h.ask("other", "GET", "/v1/grants?limit=2&cursor="+next, nil).problem(client.BadCursor)
		h.ask("reader", "GET", "/v1/grants?skill=greeter&cursor="+next, nil).problem(client.BadCursor)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || next != "" {
		t.Errorf("got %v, want %v, and then %q", got, want, next)
	}
	h.ask("reader", "GET", "/v1/grants/"+theirs.ID, nil).problem(client.NotFound)
}
