package gate

import (
	"path"
	"strings"
)

// ValidPattern reports whether pattern can stand among a declaration's outputs:
// a relative path below outputs/ whose elements are patterns of [path.Match], or
// "**" for any number of elements.
func ValidPattern(pattern string) bool {
	if pattern == "" || len(pattern) > 512 || strings.HasPrefix(pattern, "/") {
		return false
	}
	for elem := range strings.SplitSeq(pattern, "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
		if _, err := path.Match(elem, ""); err != nil {
			return false
		}
	}
	return true
}

// MatchOutput reports whether the path of a file below outputs/ matches one of
// the patterns. No patterns match everything.
func MatchOutput(patterns []string, file string) bool {
	if len(patterns) == 0 {
		return true
	}
	elems := strings.Split(file, "/")
	for _, p := range patterns {
		if match(p, elems) {
			return true
		}
	}
	return false
}

// match compares element by element, each of the pattern with each of the file's
// at most once, so its time is the product of the two lengths in bytes.
func match(pattern string, elems []string) bool {
	reach := make([]bool, len(elems)+1) // reach[i]: the pattern so far matches elems[:i]
	next := make([]bool, len(elems)+1)
	reach[0] = true
	for p := range strings.SplitSeq(pattern, "/") {
		clear(next)
		some := false
		for i, ok := range reach {
			if !ok {
				continue
			}
			if p == "**" {
				for j := i; j <= len(elems); j++ {
					next[j] = true
				}
				some = true
				break
			}
			if i < len(elems) {
				hit, _ := path.Match(p, elems[i])
				next[i+1] = hit
				some = some || hit
			}
		}
		if !some {
			return false
		}
		reach, next = next, reach
	}
	return reach[len(elems)]
}
