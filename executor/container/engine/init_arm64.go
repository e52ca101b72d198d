//go:build linux

package engine

import _ "embed"

//go:embed init/arm64
var initProgram []byte
