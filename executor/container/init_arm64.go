//go:build linux

package container

import _ "embed"

//go:embed init/arm64
var initProgram []byte
