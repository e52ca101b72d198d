package skill

import "github.com/tracon-go/tracon/bundle"

// FromBundle makes a Skill of a bundle that was kept, such as that of an
// imported skill, with what [Read] says of a folder with the same files. A
// single stored script has no SKILL.md: it is a skill of that name without
// instructions.
func FromBundle(name string, b bundle.Bundle) (Skill, error) {
	if _, _, ok := b.Text(markdown); ok {
		return FromFiles(b.Files(), bundle.Limits{})
	}
	s := Skill{Outline{Meta: Meta{Name: name}}, b}
	s.Scripts, s.Diagnostics = scripts(b.Declaration(), headsOf(b))
	if len(s.Scripts) == 1 {
		s.Description = s.Scripts[0].Declaration.Description
	}
	return s, nil
}
