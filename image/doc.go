// Package image keeps runtimes: root file systems, each under the digest of all
// that is in it. Executors show one to a script in place of the host's programs.
//
// Start with [New]. [Store.ImportTar], [Store.ImportFolder] and [Store.ImportLayers]
// unpack a root file system once; [Store.Image] opens one by its digest, and holds it:
// what is held is not removed. The package oci beside this one reads the packages in
// which others hand images on, and registry has them from where they are offered.
//
// # What is kept
//
// Folders, regular files and links, with the bytes of a file, whether it can be
// executed, and the time of its last change in whole seconds: Python takes a
// compiled module only where it was made of a source of that time. Owners, other
// times, set-user-id bits and extended attributes are dropped; everybody may read
// everything and nobody may write. Devices, pipes and sockets
// are left out and named. The text of a link is kept as it stands, whatever it
// says: it means something only inside a box, whose root is the image's.
//
// # What is refused
//
// An archive is refused whole for a name with "..", one below a link or a file, a
// hard link to what is not a file before it in the archive, a path that comes
// twice (two readers would see two file systems; a folder may come again), or more
// than the [Limits]; and for one that breaks off before its end mark, or has anything
// but zeros behind it. While it is unpacked there is no link on the disk: they are
// made last, so that none can be followed.
//
// Layers lie over each other. In each, a path comes once, and what takes the place of
// something below it does so whole. A path that leads through links of the layers below
// is resolved in what is known of the tree, as a box would, and never on the disk; one
// through a link of its own layer is refused.
//
// # The digest
//
// It is the SHA-256 of a manifest: the text "tracon/image/1" and, for each entry
// in the bytewise order of the paths, the path, the kind, whether it can be
// executed, the text of the link, the size, the time and the SHA-256 of the bytes.
// Numbers, and the lengths before texts, have 64 bits, the most significant byte
// first. A hard link counts as a file of its own.
//
// That is the digest of the tree. An image that sets variables ([TakeEnvironment]) has
// another one: the SHA-256 of the text "tracon/image/2", the tree's digest, and for each
// variable in the bytewise order of the names the name and the value with their lengths.
package image
