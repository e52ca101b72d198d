package keep

import (
	"fmt"
	"reflect"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/gate"
)

// Alive says that the tenant was deleted, or nil: then nothing is given to it any more,
// whoever was faster. What is there still can be taken back.
func Alive(t access.Tenant) error {
	if t.Deleted.IsZero() {
		return nil
	}
	return fmt.Errorf("%w: %q", admin.ErrDeleted, t.Name)
}

// NoPolicy tells whether p gives nothing: it is set for a tenant that was deleted too.
func NoPolicy(p gate.Policy) bool {
	p.Suspended = false // no part of the setting
	return reflect.DeepEqual(p, gate.Policy{})
}
