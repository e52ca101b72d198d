//go:build linux

package sandbox

import _ "embed"

//go:embed init/amd64
var initProgram []byte
