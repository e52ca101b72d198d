package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracon-go/tracon/internal/imagecase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// realImage is packed once: BusyBox, whose programs are one file with many names, and a
// file that a later layer hides; Python with its library; and what hides and adds.
var realImage = sync.OnceValues(func() (p imagecase.Packed, err error) {
	box, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return p, fmt.Errorf("%w (./check --install brings it)", err)
	}
	if program, err := elf.NewFile(bytes.NewReader(box)); err != nil || slices.ContainsFunc(program.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_INTERP }) {
		return p, errors.New("/bin/busybox is linked with libraries; the package busybox-static has one that is not")
	}
	base := []imagecase.Entry{
		{Name: "usr/bin/busybox", Content: string(box), Mode: 0o755},
		{Name: "bin", Kind: tar.TypeSymlink, Target: "usr/bin"},
		{Name: "srv/hidden", Content: "below\n", Mode: 0o644},
		{Name: "srv/folder/hidden", Content: "below\n", Mode: 0o644},
	}
	for _, name := range []string{"sh", "cat", "ls", "id", "wc", "tr"} {
		base = append(base, imagecase.Entry{Name: "usr/bin/" + name, Kind: tar.TypeLink, Target: "usr/bin/busybox", Mode: 0o755})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return p, err
	}
	python, err := []byte(nil), rootfs.Make(dir, rootfs.Python...)
	if err == nil {
		python, err = imagecase.TarFolder(dir)
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return p, err
	}
	top := imagecase.Tar(
		imagecase.Entry{Name: "srv/.wh.hidden"},
		imagecase.Entry{Name: "srv/folder/.wh..wh..opq"},
		imagecase.Entry{Name: "srv/folder/added", Content: "above\n", Mode: 0o644},
		imagecase.Entry{Name: "srv/linked", Kind: tar.TypeLink, Target: "srv/folder/added", Mode: 0o644},
	)
	fast := func(layer []byte) []byte {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		_, _ = w.Write(layer)
		_ = w.Close()
		return b.Bytes()
	}
	return imagecase.Pack(imagecase.Options{Compress: fast, Suffix: "+gzip", User: "1000", Entrypoint: []string{"/bin/sh"}, Env: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}},
		imagecase.Tar(base...), python, top), nil
})

// realimage HOST/REPOSITORY:TAG puts the image into a registry, and sets DIGEST to its
// manifest's.
func pushReal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: realimage HOST/REPOSITORY:TAG")
	}
	p, err := realImage()
	ts.Check(err)
	ts.Setenv("DIGEST", p.Digest())
	push(ts, args[0], p)
}
