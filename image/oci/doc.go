// Package oci reads container images: an OCI layout, in a folder or an archive, and
// what docker save writes. What comes of one is an [image.Image], whose digest says
// nothing of how it was packed.
//
// Start with [ImportArchive] for an archive of any kind that is known here, or with
// [ImportLayout] for a folder. [Fetch] takes what a [Source] has, such as that of the
// package registry, in two steps: first everything is copied into a folder of one's
// own and compared with the sizes and digests that were said of it, then [Parts.Unpack]
// makes an image of it. Nothing is decoded or unpacked that was not compared.
//
// # What is taken
//
// The layers, and of the configuration the variables of [image.TakeEnvironment]. Never
// the entrypoint, the command, the working directory, volumes or the user: what runs,
// where and as whom is the host's affair. A user and an entrypoint are named among
// what was left out.
//
// # What is refused
//
// Digests but SHA-256; a manifest, a configuration or a layer that is not what was
// said of it; a configuration of another platform than was asked for, or whose layers
// are others; layers that lie elsewhere (those with addresses), that are no tar
// archives, plain or compressed with gzip or zstd, that become more than [MaxRatio]
// times as large as they were, or more of anything than the limits. JSON is strict, but
// that members which nobody here knows are ignored, as the specification says.
package oci
