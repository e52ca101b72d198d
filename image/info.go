package image

import (
	"io"

	"github.com/tracon-go/tracon/bundle"
)

// An Info says what an image holds.
type Info struct {
	Digest      bundle.Digest     `json:"digest"`
	Tree        bundle.Digest     `json:"tree"` // of its files alone: the digest, where there is no environment
	Files       int               `json:"files"`
	Folders     int               `json:"folders"`
	Links       int               `json:"links"`
	Bytes       int64             `json:"bytes"`                 // of the files, holes too; of a file with several names, for each
	Environment map[string]string `json:"environment,omitempty"` // what runs see: see [TakeEnvironment]
}

// An Import is what came of an import.
type Import struct {
	Info
	Image   *Image   // held, so that nobody removes it before its digest is kept; to be closed
	Source  string   // where it came from, as its package says; empty: it says nothing
	Skipped []string // what was left out, each with the reason; at most 100
	Left    int      // how many were left out
}

// A Layer opens the tar archive of a layer, decompressed.
type Layer func() (io.ReadCloser, error)

func (t *tree) info(digest, files bundle.Digest, environment map[string]string) Info {
	i := Info{Digest: digest, Tree: files, Environment: environment}
	if len(environment) == 0 {
		i.Environment = nil
	}
	for _, n := range t.nodes {
		switch n.kind {
		case folder:
			i.Folders++
		case link:
			i.Links++
		case file:
			i.Files++
			i.Bytes += n.size
		}
	}
	return i
}
