//go:build linux

package engine

import _ "embed"

//go:embed init/amd64
var initProgram []byte
