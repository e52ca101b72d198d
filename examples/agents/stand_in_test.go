package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A turn is what the scripted model does next: it saw Want in what its last call came to,
// and calls a tool, or, where Tool is empty, says Text.
type turn struct {
	want       string
	tool, args string
	text       string
}

// turns is a model that lists, loads, is refused, puts it right, and answers.
var turns = []turn{
	{tool: "list_skills", args: `{}`},
	{want: `"unit-converter"`, tool: "load_skill", args: `{"skill":"unit-converter"}`},
	{want: "scripts/convert.py", tool: "run_skill_script", args: `{"skill":"unit-converter","script":"convert.py","arguments_json":"{\"value\":26.2,\"factor\":1.60934}"}`},
	{want: `There is: "scripts/convert.py"`, tool: "run_skill_script", args: `{"skill":"unit-converter","script":"scripts/convert.py","arguments_json":"{\"value\":\"far\",\"factor\":1.60934}"}`},
	{want: "/value", tool: "run_skill_script", args: `{"skill":"unit-converter","script":"scripts/convert.py","arguments_json":"{\"value\":26.2,\"factor\":1.60934}"}`},
	{want: `\"result\": 42.1647`, text: "A marathon has 42.1647 km."},
}

// A standIn answers in the place of a provider: from what a request says, and the number
// of turns before it, comes what the model does.
type standIn struct {
	t     *testing.T
	turns []turn
	next  int
	// result of the last call in a request, and the names of the tools that it offers.
	read func(body []byte) (result string, tools []string, err error)
	// answer with a call, or with a text.
	say func(id string, do turn) any
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result, tools, err := s.read(body)
	if err != nil || s.next == len(s.turns) {
		s.t.Errorf("turn %d of %d, %v: %s", s.next, len(s.turns), err, body)
		http.Error(w, "no such turn", http.StatusBadRequest)
		return
	}
	do := s.turns[s.next]
	if !strings.Contains(result, do.want) {
		s.t.Errorf("turn %d was told %q, want %q in it", s.next, result, do.want)
	}
	if want := "list_skills load_skill read_skill_resource run_skill_script"; strings.Join(tools, " ") != want {
		s.t.Errorf("turn %d has the tools %q, want %q", s.next, tools, want)
	}
	s.next++
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.say(fmt.Sprintf("call_%d", s.next), do)); err != nil {
		s.t.Error(err)
	}
}

type object = map[string]any

// chat stands in for chat completions.
func chat(t *testing.T, turns []turn) *standIn {
	s := &standIn{t: t, turns: turns}
	s.read = func(body []byte) (result string, tools []string, err error) {
		var request struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
			Tools []struct {
				Function struct {
					Name       string
					Parameters schemaOfTool
				}
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			return "", nil, err
		}
		for _, tool := range request.Tools {
			tools = append(tools, tool.Function.Name)
			if err := tool.Function.Parameters.check(tool.Function.Name); err != nil {
				return "", nil, err
			}
		}
		if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
			err = json.Unmarshal(last.Content, &result)
		}
		return result, tools, err
	}
	s.say = func(id string, do turn) any {
		message, reason := object{"role": "assistant", "content": do.text}, "stop"
		if do.tool != "" {
			message["tool_calls"] = []object{{"id": id, "type": "function", "function": object{"name": do.tool, "arguments": do.args}}}
			reason = "tool_calls"
		}
		return object{"id": "chat", "object": "chat.completion", "model": "stand-in", "choices": []object{{"index": 0, "message": message, "finish_reason": reason}}}
	}
	return s
}

// messages stands in for Anthropic's messages.
func messages(t *testing.T, turns []turn) *standIn {
	s := &standIn{t: t, turns: turns}
	s.read = func(body []byte) (result string, tools []string, err error) {
		var request struct {
			Messages []struct {
				Content []struct {
					Type    string
					Content []struct{ Text string }
				}
			}
			Tools []struct {
				Name   string
				Schema schemaOfTool `json:"input_schema"`
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			return "", nil, err
		}
		for _, tool := range request.Tools {
			tools = append(tools, tool.Name)
			if err := tool.Schema.check(tool.Name); err != nil {
				return "", nil, err
			}
		}
		for _, block := range request.Messages[len(request.Messages)-1].Content {
			if block.Type == "tool_result" {
				result += block.Content[0].Text
			}
		}
		return result, tools, nil
	}
	s.say = func(id string, do turn) any {
		content, reason := object{"type": "text", "text": do.text}, "end_turn"
		if do.tool != "" {
			content, reason = object{"type": "tool_use", "id": id, "name": do.tool, "input": json.RawMessage(do.args)}, "tool_use"
		}
		return object{"id": "msg", "type": "message", "role": "assistant", "model": "stand-in", "content": []object{content}, "stop_reason": reason,
			"usage": object{"input_tokens": 1, "output_tokens": 1}}
	}
	return s
}

// schemaOfTool is what must have come through a library's own types.
type schemaOfTool struct {
	Type       string
	Properties map[string]struct{ Type string }
	Required   []string
	Additional *bool `json:"additionalProperties"`
}

func (s schemaOfTool) check(tool string) error {
	if s.Type != "object" || s.Additional == nil || *s.Additional {
		return fmt.Errorf("%s takes unknown members", tool)
	}
	if tool == "run_skill_script" && (len(s.Required) != 2 || s.Properties["arguments"].Type != "array") {
		return fmt.Errorf("the schema of %s did not come through: %+v", tool, s)
	}
	return nil
}
