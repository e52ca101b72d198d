//go:build linux

package container

import _ "embed"

//go:embed init/amd64
var initProgram []byte
