// Package registry has container images from where they are offered, over the
// distribution protocol that Docker and OCI registries speak. [Pull] copies the parts of
// one into a folder; the package oci beside this one compares them and makes an image of
// them.
//
// # Whom it asks
//
// The registry of the reference, over TLS; by plain HTTP only one on this machine, or
// where [Options.PlainHTTP] says so of it. Addresses in private networks need a word, and
// those where clouds keep credentials are never asked. A registry may send on a request
// for a part of an image, over TLS and within the same bounds, since the part is compared
// with its digest whoever has it; a manifest or a token it must answer itself. There is no
// proxy of the environment. Credentials go to that registry, and to the place that it
// names for tokens, over TLS alone.
package registry
