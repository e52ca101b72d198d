package mcpserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// smallAnswer is how many bytes an answer may have that takes no room: so much goes
// whatever else is under way.
const smallAnswer = 64 << 10

// leftOut is what a model is told where files were left out of an answer.
const leftOut = "Files are not shown here: too many large answers are under way. Those that a script wrote have handles, by which a next call may take them."

// bounded has large answers take room until they were read, beside what calls have. Where
// there is none, the answer of a tool comes without the files that it shows, since a script
// that ran is not lost by that; anything else is to be asked for again.
func bounded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		if n := sizeOf(result); n <= smallAnswer || askingOf(req.GetExtra()).hold(n) {
			return result, nil
		}
		if r, ok := result.(*mcp.CallToolResult); ok {
			return withoutFiles(r), nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Too many large answers are under way. Ask again later."}
	}
}

func withoutFiles(r *mcp.CallToolResult) *mcp.CallToolResult {
	isFile := func(c mcp.Content) bool { _, ok := c.(*mcp.EmbeddedResource); return ok }
	if !slices.ContainsFunc(r.Content, isFile) {
		return r
	}
	r.Content = append(slices.DeleteFunc(r.Content, isFile), &mcp.TextContent{Text: leftOut})
	return r
}

// sizeOf is about how many bytes there are in what may be large.
func sizeOf(result mcp.Result) (n int64) {
	file := func(c *mcp.ResourceContents) int64 { return int64(len(c.Text) + len(c.Blob)) }
	skill := func(e entry) int64 {
		n := len(e.Frontmatter)
		for _, r := range e.Resources {
			n += len(r.URI) + len(r.Digest)
		}
		return int64(n)
	}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if told, ok := r.StructuredContent.(json.RawMessage); ok {
			n = int64(len(told))
		}
		for _, c := range r.Content {
			switch c := c.(type) {
			case *mcp.TextContent:
				n += int64(len(c.Text))
			case *mcp.EmbeddedResource:
				n += file(c.Resource)
			}
		}
	case *mcp.ReadResourceResult:
		for _, c := range r.Contents {
			n += file(c)
		}
	case *skillsListResult:
		for _, e := range r.Skills {
			n += skill(e)
		}
	case *skillsGetResult:
		n = skill(r.Skill)
	}
	return n
}
