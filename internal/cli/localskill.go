package cli

import (
	"context"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/spool"
	"github.com/tracon-go/tracon/skill"
)

func (l *local) Skills(ctx context.Context) (skillsJSON, error) {
	if err := l.h.AddRoots(); err != nil {
		return skillsJSON{}, err
	}
	imported, err := l.h.Admin.Skills(ctx, l.tenant)
	return toSkillsJSON(imported, l.h.Skills), err
}

func (l *local) Skill(ctx context.Context, word string) (skillJSON, error) {
	s, err := l.read(ctx, word)
	if err != nil {
		return skillJSON{}, err
	}
	return toSkillJSON(s), nil
}

// read reads the skill that word means, as it is now. A single stored script is
// shown as a skill without a SKILL.md.
func (l *local) read(ctx context.Context, word string) (skill.Skill, error) {
	name, err := l.h.SkillName(word)
	if err != nil {
		return skill.Skill{}, err
	}
	b, err := l.h.Read(ctx, l.tenant, name)
	if err != nil {
		return skill.Skill{}, hint(err, "`tracon skill list` lists the known ones; name a folder with a separator, such as ./%s", name)
	}
	if daemon.IsFolder(word) { // with what was left out of the bundle
		return skill.Read(word, l.h.Config.Content)
	}
	s, err := skill.FromBundle(name, b)
	if folder, ok := l.h.Skills.Folder(name); ok {
		s.Folder = folder
	}
	return s, err
}

func (l *local) Lint(ctx context.Context, word string) ([]skill.Diagnostic, error) {
	if daemon.IsFolder(word) {
		return skill.LintFolder(word, l.h.Config.Content)
	}
	s, err := l.read(ctx, word)
	if err != nil {
		return nil, err
	}
	return skill.Lint(s), nil
}

func (l *local) Spool() *spool.Spool { return l.h.Spool() }

func (l *local) Limits() bundle.Limits { return l.h.Config.Content }

func (l *local) Import(ctx context.Context, i admin.Importing) (admin.Version, error) {
	i.Actor, i.Tenant = l.actor, l.tenant
	return l.h.Admin.Import(ctx, i)
}

func (l *local) Versions(ctx context.Context, name string) ([]admin.Version, error) {
	return l.h.Admin.Versions(ctx, l.tenant, name, 0)
}

func (l *local) Content(ctx context.Context, _ *spool.Spool, v admin.Version) (bundle.Content, error) {
	return l.h.Store.Files(ctx, l.tenant, v.Digest)
}

func (l *local) InFolder(aside *spool.Spool, name string) (bundle.Content, bool, error) {
	if err := l.h.AddRoots(); err != nil {
		return nil, false, err
	}
	if _, known := l.h.Skills.Folder(name); !known {
		return nil, false, nil
	}
	_, c, err := l.h.Skills.SkillInto(name, l.h.Config.Content, aside)
	return c, true, err
}

func (l *local) DeleteSkill(ctx context.Context, name, reason string) (admin.Version, error) {
	return l.h.Admin.DeleteSkill(ctx, l.actor, l.tenant, name, reason)
}
