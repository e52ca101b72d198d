package oci

import (
	"context"
	"slices"
	"strings"
)

// name is what an image is called where d describes it.
func name(d Descriptor) string {
	if full := d.Annotations[annotationFull]; full != "" {
		return full
	}
	return d.Annotations[annotationName]
}

// choose returns the manifest among those listed that is meant: for the platform, and,
// at the top of a layout, of the name. Indexes that may lead to it are fetched.
func (f *fetcher) choose(ctx context.Context, listed []Descriptor, top bool, depth int) (Descriptor, error) {
	if depth > maxNested || len(listed) > maxListed {
		return Descriptor{}, bad("its index is nested too deeply, or lists more than %d images", maxListed)
	}
	found := candidates(listed, f.options.platform())
	if top && f.options.Name != "" {
		found = slices.DeleteFunc(found, func(d Descriptor) bool {
			return d.Annotations[annotationFull] != f.options.Name && d.Annotations[annotationName] != f.options.Name
		})
		if len(found) == 0 {
			return Descriptor{}, bad("it has no image of the name %q for %s; there is %s", f.options.Name, f.options.platform(), said(listed, name))
		}
	}
	found = distinct(found)
	switch {
	case len(found) == 0:
		return Descriptor{}, bad("it has no image for %s; there is %s", f.options.platform(), said(listed, platformOf))
	case len(found) > 1 && top:
		return Descriptor{}, bad("it has several images; name one of %s", said(found, name))
	case len(found) > 1:
		return Descriptor{}, bad("it has several images for %s; name one of %s", f.options.platform(), said(found, platformOf))
	}
	d := found[0]
	if isManifest(d) {
		return d, nil
	}
	var in index
	if err := f.document(ctx, d, &in); err != nil {
		return Descriptor{}, err
	}
	if in.SchemaVersion != 2 || in.MediaType != "" && in.MediaType != d.MediaType {
		return Descriptor{}, bad("%s is no index of the type %s", d.Digest, d.MediaType)
	}
	inner, err := f.choose(ctx, in.Manifests, false, depth+1)
	if name(inner) == "" && name(d) != "" {
		inner.Annotations = d.Annotations
	}
	return inner, err
}

// candidates are what may be the image for the platform: what says that it is, else
// what says nothing.
func candidates(listed []Descriptor, want Platform) []Descriptor {
	var exact, fitting, silent []Descriptor
	for _, d := range listed {
		switch p := d.Platform; {
		case !isIndex(d) && !isManifest(d), d.Annotations[annotationKind] != "":
		case p == nil || *p == Platform{}:
			silent = append(silent, d)
		case *p == want:
			exact = append(exact, d)
		case p.OS == want.OS && p.Architecture == want.Architecture && want.Variant == "":
			fitting = append(fitting, d)
		}
	}
	for _, list := range [][]Descriptor{exact, fitting} {
		if len(list) > 0 {
			return list
		}
	}
	return silent
}

// distinct leaves out what is described again.
func distinct(list []Descriptor) []Descriptor {
	var out []Descriptor
	for _, d := range list {
		if !slices.ContainsFunc(out, func(o Descriptor) bool { return o.Digest == d.Digest }) {
			out = append(out, d)
		}
	}
	return out
}

func platformOf(d Descriptor) string {
	if d.Platform == nil {
		return ""
	}
	return d.Platform.String()
}

// said lists what those listed say of themselves.
func said(listed []Descriptor, what func(Descriptor) string) string {
	var words []string
	for _, d := range listed {
		if w := what(d); w != "" && d.Annotations[annotationKind] == "" && !slices.Contains(words, w) && len(words) < 20 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "none that says what it is"
	}
	return strings.ToValidUTF8(strings.Join(words, ", "), "\uFFFD")
}
