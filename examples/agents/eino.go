package main

import (
	"context"
	"encoding/json"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/tracon-go/tracon/toolset"
)

// withEino is Eino's own loop, with a model that it knows.
func withEino(ctx context.Context, m model.ToolCallingChatModel, tools *toolset.Session, task string) (string, error) {
	// An agent has its tools from its beginning: make one for each task.
	offered, err := einoTools(ctx, tools)
	if err != nil {
		return "", err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: m, ToolsConfig: compose.ToolsNodeConfig{Tools: offered},
		MaxStep: 2 * maxTurns}) // a turn is two steps: the model, then its tools
	if err != nil {
		return "", err
	}
	answer, err := agent.Generate(ctx, []*schema.Message{schema.SystemMessage(instructions), schema.UserMessage(task)})
	if err != nil {
		return "", err
	}
	return answer.Content, nil
}

func einoTools(ctx context.Context, tools *toolset.Session) (list []tool.BaseTool, err error) {
	offered, err := tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		list = append(list, &einoTool{t, tools})
	}
	return list, nil
}

// An einoTool is one of the tools as Eino wants it.
type einoTool struct {
	tool  toolset.Tool
	tools *toolset.Session
}

var _ tool.InvokableTool = (*einoTool)(nil)

// Info tells what the tool is.
func (t *einoTool) Info(context.Context) (*schema.ToolInfo, error) {
	input := new(jsonschema.Schema)
	if err := json.Unmarshal(t.tool.Input, input); err != nil {
		return nil, err
	}
	return &schema.ToolInfo{Name: t.tool.Name, Desc: t.tool.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(input)}, nil
}

// InvokableRun calls it. There is no error: whatever went wrong, the text says what the
// model can do.
func (t *einoTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.tools.Call(ctx, t.tool.Name, json.RawMessage(arguments), nil).Text, nil
}
