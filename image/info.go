package image

import "github.com/tracon-go/tracon/bundle"

// An Info says what an image holds.
type Info struct {
	Digest  bundle.Digest `json:"digest"`
	Files   int           `json:"files"`
	Folders int           `json:"folders"`
	Links   int           `json:"links"`
	Bytes   int64         `json:"bytes"` // of the files, holes too; of a file with several names, for each
}

// An Import is what came of an import.
type Import struct {
	Info
	Image   *Image   // held, so that nobody removes it before its digest is kept; to be closed
	Skipped []string // what was left out, each with the reason; at most 100
	Left    int      // how many were left out
}

func (t *tree) info(d bundle.Digest) Info {
	i := Info{Digest: d}
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
