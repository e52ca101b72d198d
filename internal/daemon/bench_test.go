package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/skill"
)

// bigFolder writes a skill of n files of 4 KiB, no two alike, and opens a house
// that knows it.
func bigFolder(b *testing.B, n int) (h *daemon.House, folder string) {
	b.Helper()
	dir := b.TempDir()
	folder = filepath.Join(dir, "skills", "s")
	write(b, filepath.Join(folder, "SKILL.md"), front)
	for i := range n - 1 {
		write(b, filepath.Join(folder, fmt.Sprintf("assets/%02d/file-%04d.txt", i%40, i)), fmt.Sprint(i, strings.Repeat(" ", 4<<10)))
	}
	env := map[string]string{"HOME": dir, "TRACON_RUNTIME": filepath.Join(dir, "run"), "TRACON_SKILLS": filepath.Join(dir, "skills")}
	c, err := config.Load(config.Source{Getenv: func(k string) string { return env[k] }, Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if h, err = daemon.Open(b.Context(), c, slog.New(slog.DiscardHandler)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if err := h.AddRoots(); err != nil {
		b.Fatal(err)
	}
	return h, folder
}

// BenchmarkImportFolder reads a folder and imports it for a tenant that has
// nothing, into a store that has none of its files. 2,000 files must take less than a
// second.
func BenchmarkImportFolder(b *testing.B) {
	for _, n := range []int{5, 2000} {
		b.Run(fmt.Sprint("files=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				h, folder := bigFolder(b, n)
				b.StartTimer()
				aside := h.Spool()
				o, c, err := skill.ReadInto(folder, bundle.Limits{}, aside)
				if err == nil {
					_, err = h.Admin.Import(b.Context(), admin.Importing{Actor: "op", Tenant: "t", Skill: o.Name, Content: c})
				}
				if err := errors.Join(err, aside.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFindAndRead does what the gates "name" and "content" do for each call,
// for a skill in a folder and for the same one imported.
func BenchmarkFindAndRead(b *testing.B) {
	for _, n := range []int{5, 2000} {
		h, folder := bigFolder(b, n)
		s, err := skill.Read(folder, bundle.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Admin.Import(b.Context(), admin.Importing{Actor: "op", Tenant: "imported", Skill: s.Name, Content: s.Bundle}); err != nil {
			b.Fatal(err)
		}
		for _, tenant := range []string{"folder", "imported"} {
			b.Run(fmt.Sprint("files=", n, "/", tenant), func(b *testing.B) {
				_, size := s.Bundle.Size()
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := h.Contents.Find(b.Context(), tenant, "s", "assets/03/file-0003.txt"); err != nil {
						b.Fatal(err)
					}
					if _, err := h.Contents.Read(b.Context(), tenant, "s", bundle.Limits{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
