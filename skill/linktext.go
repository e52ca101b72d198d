package skill

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/gate"
)

const maxTarget = 512 // bytes

var linkDefinition = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:[ \t]*(\S+)`)

// links returns the targets of the links and pictures in one line of Markdown.
func links(line string) []string {
	line = withoutCode(line)
	var all []string
	if m := linkDefinition.FindStringSubmatch(line); m != nil {
		all = append(all, m[1])
	}
	for {
		_, rest, ok := strings.Cut(line, "](")
		if !ok {
			return all
		}
		// A target is looked for in so many bytes, or a line of "](" would take the
		// square of its length.
		near := strings.TrimLeft(rest[:min(len(rest), maxTarget)], " ")
		end := strings.IndexAny(near, " \t\r\n)")
		if strings.HasPrefix(near, "<") {
			end = strings.IndexAny(near, ">\n") + 1
		}
		if end <= 0 {
			line = rest
			continue
		}
		// It may hold pairs of round brackets.
		for end < len(near) && near[end] == ')' && strings.Count(near[:end], "(") > strings.Count(near[:end], ")") {
			end++
			if more := strings.IndexAny(near[end:], " \t\r\n)"); more >= 0 {
				end += more
			} else {
				end = len(near)
			}
		}
		all = append(all, near[:end])
		line = rest
	}
}

// withoutCode blanks what stands between backticks.
func withoutCode(line string) string {
	if !strings.Contains(line, "`") {
		return line
	}
	b := []byte(line)
	in := false
	for i, c := range b {
		if c == '`' {
			in = !in
		}
		if in || c == '`' {
			b[i] = ' '
		}
	}
	if in {
		return line // an odd one begins no code
	}
	return string(b)
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// relative returns the path that a link's target names, if it is one on this
// system and no web page, place in the text, or pattern to fill in.
func relative(target string) (string, bool) {
	if inner, ok := strings.CutPrefix(target, "<"); ok {
		target = strings.TrimSuffix(inner, ">")
	}
	target, _, _ = strings.Cut(target, "#")
	target, _, _ = strings.Cut(target, "?")
	if target == "" || scheme.MatchString(target) || strings.HasPrefix(target, "//") || strings.ContainsAny(target, "{}<>$*") {
		return "", false
	}
	if plain, err := url.PathUnescape(target); err == nil {
		target = plain
	}
	return target, true
}

// namedScripts returns what reads like the path of a script in a line: elements
// with slashes between, and an extension that an interpreter runs. The variable
// for the skill's own folder, such as {baseDir}, may stand before it.
func namedScripts(line string) []string {
	var all []string
	for i := 0; i < len(line); {
		if !pathByte(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && pathByte(line[i]) {
			i++
		}
		word := strings.TrimRight(line[start:i], "./-")
		if before := start - 1; before >= 0 {
			switch c := line[before]; {
			case (c == '}' || c == '>') && strings.HasPrefix(word, "/"):
				word = word[1:]
			case strings.IndexByte(`\:~$%@*<>}`, c) >= 0 || c >= 0x80:
				continue // a part of something else
			}
		}
		word = strings.TrimPrefix(word, "./")
		if len(word) > 512 || !strings.Contains(word, "/") || strings.HasPrefix(word, "/") || strings.Contains(word, "//") || strings.Contains(word, "../") {
			continue
		}
		if i < len(line) && strings.IndexByte(`*<{$`, line[i]) >= 0 {
			continue // a pattern to fill in
		}
		if slices.Contains(runnable, gate.Extension(word, "")) {
			all = append(all, word)
		}
	}
	return all
}

func pathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./-", c) >= 0
}
