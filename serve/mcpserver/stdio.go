package mcpserver

import (
	"context"
	"io"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/toolset"
)

// maxLine is the most bytes of one message over streams: input files travel in it.
const maxLine = DefaultMaxBody

// Stdio serves one client over a pair of streams, for the principal who started the
// program, until the client closes its side and has its answers, or ctx is done. It closes
// both. A line that is no message, or has more than 8 MiB, is answered by an error, and the
// next is read.
func Stdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, p access.Principal, tools *toolset.Toolset, version string, log *slog.Logger) error {
	s := newServer(p, p.May(access.WriteRuns), nil, tools, version, log)
	s.refresh(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &Handler{servers: map[key]*held{{}: {server: s}}}
	h.done.Go(func() { h.look(ctx) })
	defer h.done.Wait()
	defer stop()
	d := newDrain(ctx)
	to := &linesOut{WriteCloser: out, d: d}
	// Lines are bounded before the library sees them.
	return s.Run(ctx, &mcp.IOTransport{Reader: newLinesIn(in, to, d, maxLine), Writer: to, MaxLineLength: -1})
}
