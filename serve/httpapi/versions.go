package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

// versionOf finds the version of the tenant's skill whose id, or whose content's digest,
// begins so: the newest one for an empty word. Found is false where the tenant has none
// imported.
func (s *server) versionOf(ctx context.Context, tenant, name, word string) (v admin.Version, found bool, err error) {
	most := 1
	if word != "" {
		most = 0
		if len(word) < 4 {
			return v, false, problem(client.Invalid, "a version is named by four characters at least of its id or digest")
		}
	}
	versions, err := s.Admin.Versions(ctx, tenant, name, most)
	if err != nil {
		return v, false, err
	}
	for _, v := range versions {
		switch {
		case v.Deleted && word == "":
			return v, false, nil
		case v.Deleted, !strings.HasPrefix(v.ID, word) && !strings.HasPrefix(v.Digest.Hex(), strings.TrimPrefix(word, "sha256:")):
			continue
		}
		return v, true, nil
	}
	if word != "" {
		err = notFound()
	}
	return v, false, err
}

func (s *server) history(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `path:"skill" maxLength:"512"`
}) (*answer[client.Page[client.Version]], error) {
	list := params.ListOf(p.Tenant, "skill-history", in.Skill)
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	versions, err := s.versionsBefore(ctx, p.Tenant, in.Skill, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Version]{Items: []client.Version{}}
	for _, v := range versions {
		if len(page.Items) == in.Limit {
			page.Next = params.NewCursor(list, page.Items[in.Limit-1].ID)
			break
		}
		page.Items = append(page.Items, toVersion(v))
	}
	if before == "" && len(page.Items) == 0 {
		return nil, notFound()
	}
	return &answer[client.Page[client.Version]]{page}, nil
}

// versionsBefore returns at most so many versions that came before the one with that id.
// A history is read from its newest on: few are longer than a part.
func (s *server) versionsBefore(ctx context.Context, tenant, name, before string, most int) ([]admin.Version, error) {
	for look := most; ; look *= 4 {
		versions, err := s.Admin.Versions(ctx, tenant, name, look)
		if err != nil || before == "" {
			return versions, err
		}
		i := slices.IndexFunc(versions, func(v admin.Version) bool { return v.ID == before })
		if i >= 0 && (len(versions) < look || len(versions)-i-1 >= most) {
			return versions[i+1 : min(len(versions), i+1+most)], nil
		}
		if len(versions) < look {
			return nil, problem(client.BadCursor, "the cursor is of another list, or none")
		}
	}
}

func (s *server) diffSkill(ctx context.Context, p access.Principal, in *struct {
	Skill string `path:"skill" maxLength:"512"`
	Old   string `query:"old" maxLength:"80" doc:"beginning of a version's id or digest"`
	New   string `query:"new" maxLength:"80" doc:"the same; none: the newest"`
}) (*answer[client.VersionDifference], error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	now, found, err := s.versionOf(ctx, p.Tenant, in.Skill, in.New)
	if err != nil || !found {
		return nil, orNotFound(err)
	}
	var old admin.Version
	if in.Old != "" {
		old, found, err = s.versionOf(ctx, p.Tenant, in.Skill, in.Old)
	} else {
		old, found, err = s.versionBefore(ctx, now)
	}
	if err != nil || !found {
		return nil, orNotFound(err)
	}
	a, err := s.Store.Files(ctx, p.Tenant, old.Digest)
	if err != nil {
		return nil, err
	}
	b, err := s.Store.Files(ctx, p.Tenant, now.Digest)
	if err != nil {
		return nil, err
	}
	out := client.VersionDifference{Old: toVersion(old), New: toVersion(now), Changes: []client.Change{}}
	for c, err := range bundle.Changes(a, b) {
		if err != nil {
			return nil, err
		}
		out.Changes = append(out.Changes, toChange(c))
	}
	if err := s.going(ctx, p.Tenant, sizeOf(out.Changes)); err != nil {
		return nil, err
	}
	return &answer[client.VersionDifference]{out}, nil
}

// versionBefore finds the content that the skill had before v.
func (s *server) versionBefore(ctx context.Context, v admin.Version) (admin.Version, bool, error) {
	versions, err := s.versionsBefore(ctx, v.Tenant, v.Skill, v.ID, 100)
	for _, one := range versions {
		if !one.Deleted {
			return one, true, err
		}
	}
	return admin.Version{}, false, err
}

func orNotFound(err error) error {
	if err == nil {
		err = notFound()
	}
	return err
}
