package oci

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// WriteArchive writes the parts as an OCI layout in a tar archive, which [ImportArchive]
// reads: here, or where it is sent, with the platform for which they were fetched.
//
// # Errors
//
// What w and the operating system say; the cause of ctx.
func (p *Parts) WriteArchive(ctx context.Context, w io.Writer) error {
	d := p.Manifest
	d.Platform = nil // it is the only one: whether it is the one that is meant, its configuration says
	d.Annotations = nil
	if p.Name != "" {
		d.Annotations = map[string]string{annotationFull: p.Name}
	}
	list, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []Descriptor{d}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{{layoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {indexFile, list}} {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.data)), Mode: 0o644}); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	for _, d := range distinct(append([]Descriptor{p.Manifest, p.about}, p.layers...)) {
		if err := p.writePart(ctx, t, d); err != nil {
			return err
		}
	}
	return t.Close()
}

func (p *Parts) writePart(ctx context.Context, t *tar.Writer, d Descriptor) error {
	f, err := p.scratch.Open(blobName(d))
	if err != nil {
		return err
	}
	err = t.WriteHeader(&tar.Header{Name: blobs + blobName(d), Size: d.Size, Mode: 0o644})
	if err == nil {
		_, err = io.Copy(t, &stopped{ctx, f})
	}
	return errors.Join(err, f.Close())
}
