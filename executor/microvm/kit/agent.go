package kit

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

// packedAgent is the agent, as agent/build.sh makes it.
//
//go:embed agent.gz
var packedAgent []byte

// maxAgent is more than the agent has, in bytes.
const maxAgent = 32 << 20

// agentProgram returns the agent.
func agentProgram() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packedAgent))
	if err != nil {
		return nil, fmt.Errorf("kit: the agent within this program: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxAgent))
	if err != nil {
		return nil, fmt.Errorf("kit: the agent within this program: %w", err)
	}
	return b, nil
}
