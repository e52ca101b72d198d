package main

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/tracon-go/tracon/toolset"
)

// withOpenAI is a loop over chat completions.
func withOpenAI(ctx context.Context, client openai.Client, model string, tools *toolset.Session, task string) (string, error) {
	messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions), openai.UserMessage(task)}
	for range maxTurns {
		// Each turn anew: a grant may have come, or gone.
		offered, err := openAITools(ctx, tools)
		if err != nil {
			return "", err
		}
		answer, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: model, Messages: messages, Tools: offered})
		if err != nil {
			return "", err
		}
		if len(answer.Choices) == 0 {
			return "", errEmpty
		}
		said := answer.Choices[0].Message
		if len(said.ToolCalls) == 0 {
			return said.Content, nil
		}
		messages = append(messages, said.ToParam())
		for _, call := range said.ToolCalls {
			// Whatever went wrong, the result says what the model can do.
			result := tools.Call(ctx, call.Function.Name, json.RawMessage(call.Function.Arguments), nil)
			messages = append(messages, openai.ToolMessage(result.Text, call.ID))
		}
	}
	return "", errTurns
}

func openAITools(ctx context.Context, tools *toolset.Session) (list []openai.ChatCompletionToolUnionParam, err error) {
	offered, err := tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		var parameters shared.FunctionParameters
		if err := json.Unmarshal(t.Input, &parameters); err != nil {
			return nil, err
		}
		list = append(list, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: parameters}))
	}
	return list, nil
}
