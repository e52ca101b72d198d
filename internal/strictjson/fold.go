package strictjson

import (
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// UnmarshalFolded is [Unmarshal] for the one wire on which names are read without
// regard to ASCII case and unknown members are ignored. A name that stands twice
// once its case is folded is refused in every object, in unknown ones too. Only
// A to Z fold: "ſource" is another name than "source". The Go type's fields have
// their names in json tags; it has no maps, whose keys would be taken for names.
// What is wrong in the text is an *Error.
func UnmarshalFolded(b []byte, v any, limits Limits) error {
	r := &reader{limits: limits.orDefaults(), fold: spelling(reflect.TypeOf(v))}
	spelled, _, err := r.whole(b)
	if err != nil {
		return err
	}
	return semantic(json.Unmarshal(spelled, v))
}

// spellings are what spell noted, by type: there are a few, and each takes longer than
// to read a run. What is kept is not changed.
var spellings sync.Map

func spelling(t reflect.Type) map[string]string {
	if known, ok := spellings.Load(t); ok {
		return known.(map[string]string)
	}
	names := map[string]string{}
	spell(t, names)
	spellings.Store(t, names)
	return names
}

// spell notes the names of the members of t and of what stands in it.
func spell(t reflect.Type, names map[string]string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		spell(t.Elem(), names)
	case reflect.Map:
		panic("strictjson: UnmarshalFolded into a map")
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			names[lower(name)] = name
			spell(f.Type, names)
		}
	}
}

// lower folds A to Z, and nothing else.
func lower(name string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, name)
}
