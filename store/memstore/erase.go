package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// EraseCalls implements [store.Eraser].
func (s *Store) EraseCalls(ctx context.Context, name string, remove, strip []string, entry audit.Pending) error {
	if err := keep.History(name, entry); err != nil {
		return err
	}
	return s.change(ctx, entry, func(t *tenant) error {
		for i, id := range slices.Concat(remove, strip) {
			if _, ok := t.calls[id]; !ok || i < len(remove) && slices.Contains(remove[:i], id) || i >= len(remove) && slices.Contains(remove, id) {
				return fmt.Errorf("%w: %s is not there any more", grant.ErrConflict, id)
			}
		}
		return nil
	}, func(t *tenant) {
		for _, id := range remove {
			delete(t.calls, id)
		}
		t.callIDs = slices.DeleteFunc(slices.Clone(t.callIDs), func(id string) bool { return slices.Contains(remove, id) })
		for _, id := range strip {
			t.calls[id] = t.calls[id].WithoutDetails()
		}
	})
}

// EraseContents implements [store.Eraser].
func (s *Store) EraseContents(ctx context.Context, contents []store.Expired, entry audit.Pending) error {
	if err := keep.History(gate.HostTenant, entry); err != nil {
		return err
	}
	return s.change(ctx, entry, func(*tenant) error {
		for _, c := range contents {
			var named int64
			for _, t := range s.tenants {
				for _, g := range t.grants {
					named += one(g.Pin == c.Digest)
				}
				for _, v := range t.imports {
					named += one(v.Digest == c.Digest)
				}
			}
			if _, ok := s.contents[c.Digest]; !ok || named != c.Named {
				return fmt.Errorf("%w: the content %s is gone, or others name it now", grant.ErrConflict, c.Digest)
			}
		}
		return nil
	}, func(*tenant) {
		for _, c := range contents {
			delete(s.contents, c.Digest)
		}
	})
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
