// Package archtest holds the rules of the house that the compiler cannot: which
// room may import which, where a library may be used, and how code is written.
// It has tests only. When one fails, either the change is wrong or the rule
// is; change a rule together with its reason.
package archtest
