//go:build linux && !race

// The library that reads the document has a hundred thousand lines. One pass of ./check
// compiles it, that as an ordinary user; nothing here is about races or platforms.

package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/errors"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

var update = flag.Bool("update", false, "write the golden files again")

// document reads the API's document, and a validator of it.
func (h *house) document() (map[string]map[string]struct{ OperationID string }, validator.Validator) {
	h.Helper()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	r := h.ask("reader", "GET", "/openapi.json", nil)
	if r.status != 200 {
		h.Fatal(r.status, string(r.body))
	}
	h.must(json.Unmarshal(r.body, &doc))
	parsed, err := libopenapi.NewDocument(r.body)
	h.must(err)
	v, errs := validator.NewValidator(parsed, config.WithoutSecurityValidation())
	if len(errs) > 0 {
		h.Fatal(errs)
	}
	return doc.Paths, v
}

// Every operation of the document, as every role, as the platform, as another tenant
// and without a credential: the matrix of answers is the golden file. Each answer, and
// each request that is carried out, is valid by the document. What is another tenant's
// is answered as what does not exist (T01, T03, R9).
func TestMatrix(t *testing.T) {
	h := newWholeHouse(t)
	h.grant("acme")
	h.importNamed("acme", "mine", script)
	ref := grant.Ref{Tenant: "acme", Skill: "mine", AllScripts: true}
	review, err := h.admin.Review(t.Context(), ref)
	h.must(err)
	_, err = h.admin.Grant(t.Context(), admin.Granting{Actor: "test", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process})
	h.must(err)
	h.importNamed("acme", "mine", script+"# changed\n")
	_, err = h.admin.NameRuntime(t.Context(), admin.Naming{Actor: "test", Name: "kept", Digest: bundle.Sum([]byte("kept"))})
	h.must(err)
	paths, valid := h.document()

	who := []string{"", "reader", "operator", "approver", "admin", "platform", "other"}
	var got strings.Builder
	fmt.Fprintf(&got, "%-18s", "operation")
	for _, w := range who {
		if w == "" {
			w = "nobody"
		}
		fmt.Fprintf(&got, " %-9s", w)
	}
	got.WriteString("\n")
	n, seen := 0, map[string]bool{}
	type found struct{ id, method string }
	var all []found
	for _, methods := range paths {
		for method, op := range methods {
			all = append(all, found{op.OperationID, strings.ToUpper(method)})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.id, b.id) })
	for _, op := range all {
		seen[op.id] = true
		make, ok := samples[op.id]
		if !ok {
			t.Errorf("the operation %s has no sample: add one, so that it is asked as everybody", op.id)
			continue
		}
		fmt.Fprintf(&got, "%-18s", op.id)
		for _, token := range who {
			n++
			s := make(h, n)
			r := h.askSample(token, op.method, s, valid)
			fmt.Fprintf(&got, " %-9d", r.status)
			if token == "other" && r.status == http.StatusNotFound {
				h.sameAsNothing(r, op.method, s, valid)
			}
		}
		got.WriteString("\n")
	}
	for id := range samples {
		if !seen[id] {
			t.Errorf("there is a sample for %s, and no such operation", id)
		}
	}
	golden(t, "matrix.golden", got.String())
}

// The committed document is the one that is served, and it is one by the standard. Who
// changes it looks at it: -update writes it, and ./check asks whether a client breaks.
func TestDocument(t *testing.T) {
	h := newWholeHouse(t)
	_, valid := h.document()
	if ok, errs := valid.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s", e.Message, e.Reason)
		}
	}
	golden(t, "../../../docs/openapi.json", string(h.ask("reader", "GET", "/openapi.json", nil).body)+"\n")
}

// askSample asks, and has the request and the answer looked at by the document.
func (h *house) askSample(token, method string, s sample, valid validator.Validator) reply {
	h.Helper()
	headers := s.headers
	if s.kind != "" {
		headers = append(slices.Clone(headers), "Content-Type", "", "Content-Type", s.kind)
	}
	r := h.ask(token, method, s.path, s.body, headers...)
	var body io.Reader
	checks := []func(*http.Request) (bool, []*errors.ValidationError){
		valid.GetParameterValidator().ValidateHeaderParams, valid.GetParameterValidator().ValidateQueryParams, valid.GetParameterValidator().ValidatePathParams,
	}
	if _, raw := s.body.([]byte); s.body != nil && !raw {
		text, err := json.Marshal(s.body)
		h.must(err)
		body = bytes.NewReader(text)
		checks = append(checks, valid.GetRequestBodyValidator().ValidateRequestBody)
	}
	req := httptest.NewRequestWithContext(h.Context(), method, s.path, body)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(s.headers); i += 2 {
		req.Header.Set(s.headers[i], s.headers[i+1])
	}
	for _, check := range checks {
		if ok, errs := check(req); r.status < 300 && !ok {
			for _, e := range errs {
				h.Errorf("%s: what was carried out is not as the document has it: %s: %s", r.what, e.Message, e.Reason)
			}
		}
	}
	res := &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body))}
	kind := r.header.Get("Content-Type")
	if strings.HasSuffix(kind, "json") {
		if ok, errs := valid.ValidateHttpResponse(req, res); !ok {
			for _, e := range errs {
				h.Errorf("%s: the answer is not as the document has it: %s: %s: %v", r.what, e.Message, e.Reason, e.SchemaValidationErrors)
			}
			h.Logf("%s", r.body)
		}
	}
	return r
}

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|/v1/keys/[a-z2-7]{16}|/skills/[a-z0-9-]+|/entries/[0-9]+`)

// sameAsNothing asks the same of what does not exist, and compares.
func (h *house) sameAsNothing(r reply, method string, s sample, valid validator.Validator) {
	h.Helper()
	s.path = ids.ReplaceAllStringFunc(s.path, func(found string) string {
		switch {
		case strings.HasPrefix(found, "/v1/keys/"):
			return "/v1/keys/" + strings.Repeat("a", 16)
		case strings.HasPrefix(found, "/skills/"):
			return "/skills/nobody-has-it"
		case strings.HasPrefix(found, "/entries/"):
			return "/entries/99999999"
		}
		return "01900000-0000-7000-8000-000000000000"
	})
	none := h.askSample("other", method, s, valid)
	cut := func(b []byte) string { return ids.ReplaceAllString(string(b), "ID") }
	if none.status != r.status || cut(none.body) != cut(r.body) {
		h.Errorf("%s: another tenant's is told from what does not exist:\n%d %s\n%d %s", r.what, r.status, r.body, none.status, none.body)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(none.header)), slices.Sorted(maps.Keys(r.header))); d != "" {
		h.Errorf("%s: other headers: %s", r.what, d)
	}
}

// golden compares with a file, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, d)
	}
}
