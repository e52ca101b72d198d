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
		if match(strings.Split(p, "/"), elems) {
			return true
		}
	}
	return false
}

// match compares element by element. It tries each place of a "**" once for
// each rest of the pattern, so its time is the product of the two lengths.
func match(pattern, elems []string) bool {
	reach := make([]bool, len(elems)+1) // reach[i]: the pattern so far matches elems[:i]
	reach[0] = true
	for _, p := range pattern {
		next := make([]bool, len(elems)+1)
		for i, ok := range reach {
			switch {
			case !ok:
			case p == "**":
				for j := i; j <= len(elems); j++ {
					next[j] = true
				}
			case i < len(elems):
				if hit, _ := path.Match(p, elems[i]); hit {
					next[i+1] = true
				}
			}
		}
		reach = next
	}
	return reach[len(elems)]
}
