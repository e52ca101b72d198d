package daemon

import (
	"context"
	"sync"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/skill"
)

// contents says of which skill a name tells, for the gates and the admin alike:
// that in a folder which was named by itself; else the one that was imported for
// the tenant; else that in the configuration's folders.
func contents(named *named, kept admin.Imports, folders *skill.Library) gate.Contents {
	return skill.Contents(named, skill.Contents(skill.NewImported(imports{kept}), folders))
}

// imports is the store's imported skills as package skill asks for them: neither
// admin nor skill imports the other.
type imports struct{ kept admin.Imports }

func (i imports) ImportedScript(ctx context.Context, tenant, name, path string) (gate.Origin, error) {
	v, has, err := i.kept.ImportedFile(ctx, tenant, name, path)
	switch {
	case err != nil || !has:
		return 0, err
	case v.Stored:
		return gate.StoredScript, nil
	}
	return gate.FileScript, nil
}

func (i imports) ImportedSkill(ctx context.Context, tenant, name string) (bundle.Bundle, error) {
	_, b, err := i.kept.Imported(ctx, tenant, name)
	return b, err
}

// named is the skills whose folder somebody named, such as ./my-skill on the
// command line. Whoever names a folder means the bytes in it, so for as long as the
// House is open no imported skill of the same name stands in for it.
type named struct {
	*skill.Library
	mu    sync.RWMutex
	names map[string]bool
}

func (n *named) add(skill string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil {
		n.names = map[string]bool{}
	}
	n.names[skill] = true
}

// Knows reports whether the skill's folder was named.
func (n *named) Knows(_ context.Context, _, skill string) (bool, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.names[skill], nil
}
