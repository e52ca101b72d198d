package schema_test

import (
	"testing"
	"testing/synctest"

	"github.com/tracon-go/tracon/schema"
)

// B10: what was compiled once is there for whoever comes later, wherever it was compiled:
// a bubble leaves nothing of its own behind.
func TestCompiledInAnotherBubble(t *testing.T) {
	c := schema.New(schema.Options{})
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if err := c.Compile([]byte(`{"type":"object"}`)); err != nil {
				t.Error(err)
			}
		})
	}
}
