package toolset_test

import (
	"encoding/json"
	"testing"

	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/toolset"
)

// call calls a tool of the tenant acme with arguments that are made JSON.
func call(t *testing.T, h *toolcase.House, tool string, arguments any) toolset.Result {
	t.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return h.Tools.For("acme", "model").Call(t.Context(), tool, b, nil)
}

// told reads a member of a structured answer, "" for one that is not there.
func told(t *testing.T, r toolset.Result, member string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(r.Structured, &m); err != nil {
		t.Fatalf("%v: %s", err, r.Structured)
	}
	var s string
	if json.Unmarshal(m[member], &s) == nil {
		return s
	}
	return string(m[member])
}

type object = map[string]any
