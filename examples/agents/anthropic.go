package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/tracon-go/tracon/toolset"
)

// maxTokens is of one answer.
const maxTokens = 4096

// withAnthropic is a loop over messages.
func withAnthropic(ctx context.Context, client anthropic.Client, model string, tools *toolset.Session, task string) (string, error) {
	messages := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(task))}
	for range maxTurns {
		// Each turn anew: a grant may have come, or gone.
		offered, err := anthropicTools(ctx, tools)
		if err != nil {
			return "", err
		}
		answer, err := client.Messages.New(ctx, anthropic.MessageNewParams{Model: anthropic.Model(model), MaxTokens: maxTokens,
			System: []anthropic.TextBlockParam{{Text: instructions}}, Messages: messages, Tools: offered})
		if err != nil {
			return "", err
		}
		var text strings.Builder
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			switch block.Type {
			case "text":
				text.WriteString(block.Text)
			case "tool_use":
				// Whatever went wrong, the result says what the model can do.
				result := tools.Call(ctx, block.Name, block.Input, nil)
				results = append(results, anthropic.NewToolResultBlock(block.ID, result.Text, result.Failed))
			}
		}
		if len(results) == 0 {
			return text.String(), nil
		}
		messages = append(messages, answer.ToParam(), anthropic.NewUserMessage(results...))
	}
	return "", errTurns
}

func anthropicTools(ctx context.Context, tools *toolset.Session) (list []anthropic.ToolUnionParam, err error) {
	offered, err := tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		var input struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
			Additional bool           `json:"additionalProperties"`
		}
		if err := json.Unmarshal(t.Input, &input); err != nil {
			return nil, err
		}
		list = append(list, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.Name, Description: anthropic.String(t.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: input.Properties, Required: input.Required,
				ExtraFields: map[string]any{"additionalProperties": input.Additional}},
		}})
	}
	return list, nil
}
