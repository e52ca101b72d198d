//go:build !unix

package skill

const openNonblock = 0 // there are no fifos in folders
