package skill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The codes of risk signs. A sign is no proof, and its absence is none either:
// what a script can do is decided by where it runs.
const (
	riskNetwork     = "risk-network"
	riskSubprocess  = "risk-subprocess"
	riskEval        = "risk-eval"
	riskEnvironment = "risk-environment"
	riskEncoded     = "risk-encoded"
	riskScripts     = "risk-mixed-scripts"
	riskInvisible   = "risk-invisible"
)

// signTexts says what a sign is and what to look at.
var signTexts = map[string][2]string{
	riskNetwork:     {"reaches for the network", "see with whom it speaks; a run has no network unless the policy gives one"},
	riskSubprocess:  {"starts other programs", "see which, and with what arguments"},
	riskEval:        {"runs code that it makes or loads", "see where that code comes from"},
	riskEnvironment: {"reads the environment", "see which variables; a run has a fixed set"},
	riskEncoded:     {"holds a long encoded text", "decode it and see what it is"},
	riskScripts:     {"mixes letters of several writing systems in one word", "see that each name is the one it looks like"},
	riskInvisible:   {"holds a character that does not show itself, or turns the direction", "see what it hides"},
}

const (
	maxSignsFile = 5   // lines of one code in one file
	maxSigns     = 400 // in all
)

// A signer looks for signs of risk.
type signer struct {
	diags []Diagnostic
	more  int // that were not told

	at     string         // of this file, as all that follows
	script bool           // it is run, and not read
	count  map[string]int // lines, by code
	last   map[string]int // the last line, by code
	lines  int            // of encoded text that follow each other
	first  int            // the first of them
}

// signsIn returns the signs of risk of one text, and how many are not told.
func signsIn(p, ext, text string) ([]Diagnostic, int) {
	lex := lexicons[ext]
	if lex == nil && !slices.Contains(runnable, ext) && !slices.Contains(readable, ext) && p != DeclarationName {
		return nil, 0
	}
	r := &signer{}
	r.file(p, text, lex)
	return r.diags, r.more
}

// signs returns the signs of risk of all files.
func signs(all []looked) []Diagnostic {
	r := &signer{}
	for _, f := range all {
		for _, d := range f.signs {
			r.add(d)
		}
		r.more += f.moreSigns
	}
	if r.more > 0 {
		r.diags = append(r.diags, Diagnostic{Note, "risk-more", ".", 0, fmt.Sprintf("%d more signs of risk, which are not listed", r.more), ""})
	}
	return r.diags
}

// readable are the extensions of what a person or a model reads.
var readable = []string{"md", "txt", "rst", "html"}

func (r *signer) file(p, text string, lex *lexicon) {
	r.at, r.script, r.count, r.last, r.lines = p, lex != nil, map[string]int{}, map[string]int{}, 0
	line := 0
	for text := range strings.Lines(text) {
		line++
		if lex != nil {
			lex.look(text, func(code, word string) { r.sign(code, line, word) })
		}
		r.encoded(text, line)
		r.characters(text, line)
	}
	for _, code := range slices.Sorted(maps.Keys(r.count)) {
		if n := r.count[code]; n > maxSignsFile {
			r.add(Diagnostic{Note, code, p, 0, fmt.Sprintf("it %s in %d more lines", signTexts[code][0], n-maxSignsFile), ""})
		}
	}
}

// sign tells of a line, once for each code.
func (r *signer) sign(code string, line int, word string) {
	if r.last[code] == line {
		return
	}
	r.last[code] = line
	if r.count[code]++; r.count[code] > maxSignsFile {
		return
	}
	text := "it " + signTexts[code][0]
	if word != "" {
		text += " (" + visible(clip(word, 60)) + ")"
	}
	r.add(Diagnostic{Note, code, r.at, line, text, signTexts[code][1]})
}

func (r *signer) add(d Diagnostic) {
	if len(r.diags) >= maxSigns {
		r.more++
		return
	}
	r.diags = append(r.diags, d)
}

// Bounds of what counts as encoded: digests and identifiers are shorter.
const (
	minBase64      = 200
	minHex         = 160
	minEscapes     = 40
	minBlobLine    = 40
	minBlobLines   = 6
	maxBlobLineLen = 200
)

func (r *signer) encoded(line string, at int) {
	trimmed := strings.Trim(line, " \t\r\n\"'`,+\\#")
	if len(trimmed) >= minBlobLine && len(trimmed) <= maxBlobLineLen && blob(trimmed, minBlobLine, minBlobLine) {
		if r.lines++; r.lines == 1 {
			r.first = at
		}
		if r.lines == minBlobLines {
			r.sign(riskEncoded, r.first, "")
		}
	} else {
		r.lines = 0
	}
	if len(line) < 4*minEscapes {
		return
	}
	if strings.Count(line, `\x`) >= minEscapes || strings.Count(line, `\u00`) >= minEscapes {
		r.sign(riskEncoded, at, `\x…`)
		return
	}
	start := -1
	for i := 0; i <= len(line); i++ {
		if i < len(line) && encodedByte(line[i]) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 && i-start >= minHex && blob(line[start:i], minBase64, minHex) {
			r.sign(riskEncoded, at, clip(line[start:i], 12))
			return
		}
		start = -1
	}
}

func encodedByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/=_-", c) >= 0
}

// blob reports whether s is in base64 or hex and long enough for it. Text without
// digits and letters of both cases, such as a ruler of hyphens, is neither.
func blob(s string, minBase64, minHex int) bool {
	var lower, upper, digits, others int
	hex := true
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			lower++
			hex = hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			upper++
			hex = hex && c <= 'F'
		case strings.IndexByte("+/=_-", c) >= 0:
			others++
			hex = false
		default:
			return false
		}
	}
	if hex {
		return len(s) >= minHex && digits > 0 && lower+upper > 0
	}
	return len(s) >= minBase64 && digits > len(s)/50 && lower > len(s)/10 && upper > len(s)/10 && others <= len(s)/8
}
