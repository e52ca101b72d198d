package toolset

import (
	"context"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/skill"
)

// Folders returns the skills of the library, which every tenant has.
func Folders(l *skill.Library, limits bundle.Limits) Skills { return folders{l, limits} }

type folders struct {
	l      *skill.Library
	limits bundle.Limits
}

func (f folders) List(context.Context, string) ([]Summary, error) {
	list := []Summary{}
	for _, s := range f.l.List() {
		list = append(list, Summary{s.Name, s.Description})
	}
	return list, nil
}

func (f folders) Skill(_ context.Context, _, name string) (skill.Skill, error) {
	return f.l.Skill(name, f.limits)
}
