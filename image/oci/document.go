package oci

import (
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// Bounds of what an image is described by.
const (
	MaxDocument = 4 << 20 // bytes of a manifest, an index or a configuration
	MaxLayers   = 128     // layers of an image
	maxListed   = 1024    // images in an index
	maxNested   = 3       // indexes in an index
)

// A Descriptor says what something is, how large it is and what its digest is.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	URLs        []string          `json:"urls,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *Platform         `json:"platform,omitempty"`
}

// A Platform is what an image was made for.
type Platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant,omitempty"`
}

// String returns it as people write it, such as linux/arm64/v8; of the zero Platform "".
func (p Platform) String() string {
	if p == (Platform{}) {
		return ""
	}
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

// ParsePlatform returns the platform that the text names; empty: this machine's.
//
// # Errors
//
// One that says how a platform is written.
func ParsePlatform(text string) (Platform, error) {
	if text == "" {
		return Platform{OS: "linux", Architecture: runtime.GOARCH}, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" || len(parts) == 3 && parts[2] == "" {
		return Platform{}, fmt.Errorf("oci: %q is no platform that a runtime can have; write one such as linux/amd64 or linux/arm/v7", text)
	}
	return Platform{OS: parts[0], Architecture: parts[1], Variant: strings.Join(parts[2:], "")}, nil
}

const (
	typeIndex      = "application/vnd.oci.image.index.v1+json"
	typeManifest   = "application/vnd.oci.image.manifest.v1+json"
	typeConfig     = "application/vnd.oci.image.config.v1+json"
	typeDockerList = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeDocker     = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerConf = "application/vnd.docker.container.image.v1+json"

	annotationName = "org.opencontainers.image.ref.name"
	annotationFull = "io.containerd.image.name"
	annotationKind = "vnd.docker.reference.type" // of what says something about an image
)

// layerTypes are what a layer may be. What compresses it is seen at its beginning.
var layerTypes = map[string]bool{
	"application/vnd.oci.image.layer.v1.tar": true, "application/vnd.oci.image.layer.v1.tar+gzip": true, "application/vnd.oci.image.layer.v1.tar+zstd": true,
	"application/vnd.docker.image.rootfs.diff.tar": true, "application/vnd.docker.image.rootfs.diff.tar.gzip": true, "application/vnd.docker.image.rootfs.diff.tar.zstd": true,
}

func isIndex(d Descriptor) bool { return d.MediaType == typeIndex || d.MediaType == typeDockerList }

func isManifest(d Descriptor) bool { return d.MediaType == typeManifest || d.MediaType == typeDocker }

// MediaTypes are what a manifest or an index may be.
func MediaTypes() []string { return []string{typeIndex, typeManifest, typeDockerList, typeDocker} }

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []Descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        Descriptor   `json:"config"`
	Layers        []Descriptor `json:"layers"`
}

type config struct {
	Platform
	Config struct {
		Env        []string `json:"Env"`
		User       string   `json:"User"`
		Entrypoint []string `json:"Entrypoint"`
		Cmd        []string `json:"Cmd"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{image.ErrContent}, args...)...)
}

// digest returns the digest that the descriptor says.
func (d Descriptor) digest() (bundle.Digest, error) {
	sum, err := bundle.ParseDigest(d.Digest)
	if err != nil {
		return sum, bad("the digest %.90q is none by SHA-256", d.Digest)
	}
	return sum, nil
}

// readDocument reads what the scratch folder has of d, which was compared.
func readDocument(scratch *os.Root, d Descriptor, v any) error {
	f, err := scratch.Open(path.Base(blobName(d)))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if err := strictjson.UnmarshalKnown(b, v); err != nil {
		return bad("the document %s: %w", d.Digest, err)
	}
	if isIndex(d) || isManifest(d) {
		return ofOneKind(d, b)
	}
	return nil
}

// A passed is a value that nobody looks at.
type passed struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*passed) UnmarshalJSON([]byte) error { return nil }

// ofOneKind refuses what some take for a manifest and some for an index, so that its digest
// would mean two images. Other readers know names in any case of letters.
func ofOneKind(d Descriptor, b []byte) error {
	var members map[string]passed
	if err := strictjson.UnmarshalKnown(b, &members); err != nil {
		return bad("the document %s: %w", d.Digest, err)
	}
	var manifest, index bool
	for name := range members {
		manifest = manifest || strings.EqualFold(name, "config") || strings.EqualFold(name, "layers")
		index = index || strings.EqualFold(name, "manifests")
	}
	if manifest && index {
		return bad("%s has the members of a manifest and an index, and means two images", d.Digest)
	}
	return nil
}
