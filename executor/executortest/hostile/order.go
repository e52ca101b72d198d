//go:build linux

package hostile

import (
	"cmp"
	"crypto/rand"
	"embed"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
)

// harmlessProbes are what scripts do, by the case's id. Before each, those that
// are elsewhere too, stands the prelude of its language.
//
//go:embed probes
var harmlessProbes embed.FS

// text returns the case's script in the language, and false where it has none.
func (c testCase) text(ext string) (string, bool) {
	read := func(in *embed.FS, name string) (text string, ok bool) {
		folders, _ := in.ReadDir(".") // there is one
		b, err := in.ReadFile(folders[0].Name() + "/" + name + "." + ext)
		return string(b), err == nil
	}
	own, ok := read(c.probes, c.id)
	if len(c.calls) > 0 && ext == "py" {
		calls, _ := read(&harmlessProbes, "calls")
		own, ok = calls+own, true
	}
	prelude, _ := read(&harmlessProbes, "prelude")
	return prelude + "\n" + own, ok
}

// order is the case's script, and what it is told.
func (k *trial) order(token string, more map[string]string, live *gate.Live) executortest.Order {
	script := "scripts/main." + k.ext
	o := executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: script, Data: []byte(k.text)}},
		Script: script, Mode: gate.Argv, Policy: k.setup.Policy, Live: live,
	}
	if o.Policy.Timeout == 0 || k.timeout > 0 {
		o.Policy.Timeout = cmp.Or(k.timeout, 2*patience) // scripts that end by themselves do so on a busy machine too
	}
	if k.one.policy != nil {
		k.one.policy(&o.Policy)
	}
	told := maps.Clone(k.host.words)
	told["run"], told["token"] = token, token // the word by which its processes are found
	told["wait"] = "3"                        // for how many seconds it asks for what must not come
	if k.mustWin {
		told["wait"] = "60"
	}
	for _, n := range k.one.numbers {
		told[n] = fmt.Sprint(numbers[n])
	}
	for _, c := range k.one.calls {
		told["call_"+c.name] = c.word()
	}
	maps.Copy(told, more)
	var words []string
	for _, n := range slices.Sorted(maps.Keys(told)) {
		words = append(words, n+"="+told[n])
	}
	o.Arguments = words
	return o
}

// newDigits returns 18 decimal digits that nothing else has: a word that can
// stand behind the decimal point of a time to sleep.
func newDigits() string {
	n, _ := rand.Int(rand.Reader, new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)) // it never fails
	s := n.String()
	return strings.Repeat("7", 18-len(s)) + s
}
