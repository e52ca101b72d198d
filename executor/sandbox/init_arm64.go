//go:build linux

package sandbox

import _ "embed"

//go:embed init/arm64
var initProgram []byte
