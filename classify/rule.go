package classify

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Rule is one [[marker]] table of a backend file: how one kind of message looks
// and what it means. Text is compared without regard to ASCII case, on a line
// without terminal escapes.
type Rule struct {
	// ID names the rule in records, "cuda.illegal_access".
	ID string `toml:"id"`
	// Class is what a matching line means; absent in an ignoring rule.
	Class Class `toml:"class"`
	// Ignore makes the rule say what is no evidence: "text" takes the matched
	// words out of the line (footers glued to an error must not hide it), "rest"
	// also all that follows them ("may raise ..."), "line" makes the whole line
	// undecisive (source code, usage, passed tests).
	Ignore string `toml:"ignore"`
	// Text lists the wordings, any of which matches. One made of letters, digits
	// and "_" alone matches as a whole word (one that ends in "_" as a beginning),
	// others anywhere in the line that is not directly behind a quotation mark.
	Text []string `toml:"text"`
	// Name lists identifier endings (ErrorIllegalAddress), so that the same entry
	// serves every runtime that copies another's enumerators. They count behind a
	// lead-in, before a colon or parenthesis, and at a line's start.
	Name []string `toml:"name"`
	// Match is a regular expression (RE2, on the line in lower case) that a line
	// with one of Text has to match; without After it alone says where the text
	// counts. It is not compiled before such a line came.
	Match string `toml:"match"`
	// Number restricts Text to places before one of these numbers, with nothing but
	// punctuation and words like "code" between: error numbers count only behind
	// words that say whose they are.
	Number []int `toml:"number"`
	// After restricts Text to places behind one of these words; "lead" stands for
	// the usual lead-ins (error, failed, warning, exception, what() ...).
	After []string `toml:"after"`
	// Anywhere is for runtime banners: matched even in lines that are otherwise
	// ignored, since they get glued to progress bars and test names.
	Anywhere bool `toml:"anywhere"`
	// Unless lists words on the same line that take the evidence away.
	Unless []string `toml:"unless"`
	// Seen lists words that, anywhere in the run, change Class to SeenClass.
	Seen      []string `toml:"seen"`
	SeenClass Class    `toml:"seen_class"`
	// Source says where the wording was read.
	Source string `toml:"source"`
	// Example and Clean are lines that must and must not match; tests check them.
	Example []string `toml:"example"`
	Clean   []string `toml:"clean"`
}

const (
	ignoreText = "text"
	ignoreRest = "rest"
	ignoreLine = "line"

	// minText is the shortest text that the search in gate.go can look for.
	minText = 3
)

// Check reports why a rule cannot be used.
func (r *Rule) Check() error {
	err := r.check()
	if err != nil && r.ID != "" {
		return fmt.Errorf("marker %q: %w", r.ID, err)
	}
	return err
}

func (r *Rule) check() error {
	switch {
	case r.ID == "":
		return errors.New("marker without id")
	case strings.ContainsAny(r.ID, " \t\n"):
		return errors.New("id with a blank in it")
	case r.Source == "":
		return errors.New("no source: say where the wording was read")
	case r.Ignore != "" && r.Ignore != ignoreText && r.Ignore != ignoreRest && r.Ignore != ignoreLine:
		return fmt.Errorf("unknown ignore %q: use \"text\", \"rest\" or \"line\"", r.Ignore)
	case r.Ignore != "" && (r.Class != None || len(r.Seen) > 0):
		return errors.New("an ignoring marker has no class")
	case r.Ignore == "" && r.Class <= None || r.Class > Fatal:
		return errors.New("class missing: use fatal, poisoned or recoverable")
	case (len(r.Seen) > 0) != (r.SeenClass != None):
		return errors.New("seen and seen_class belong together")
	case r.Ignore != ignoreLine && len(r.Text)+len(r.Name) == 0:
		return errors.New("no text")
	case r.Ignore == ignoreLine && len(r.Text) == 0 && r.Match == "":
		return errors.New("no text and no match")
	}
	shortest := minText
	if r.Ignore == ignoreLine || r.Ignore == ignoreRest {
		shortest = 1 // not searched for, only looked for in lines that another rule found
	}
	for _, texts := range [][]string{r.Text, r.Name, r.Seen} {
		for _, t := range texts {
			if len(t) < shortest || strings.TrimSpace(t) == "" || strings.ContainsAny(t, "\r\n") {
				return fmt.Errorf("text %q: at least %d bytes on one line are needed", t, shortest)
			}
		}
	}
	if _, err := syntax.Parse(r.Match, syntax.Perl); err != nil { // compiled when needed
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// ParseMarker reads the CLASS=TEXT of --marker into a rule that matches the text
// anywhere.
func ParseMarker(s string) (Rule, error) {
	name, text, ok := strings.Cut(s, "=")
	if !ok {
		return Rule{}, fmt.Errorf("marker %q: use CLASS=TEXT", s)
	}
	class, err := ParseClass(name)
	if err != nil {
		return Rule{}, fmt.Errorf("marker %q: %w", s, err)
	}
	r := Rule{ID: "marker:" + strings.Join(strings.Fields(text), "_"), Class: class, Text: []string{text}, Anywhere: true, Source: "command line"}
	if err := r.check(); err != nil {
		return Rule{}, fmt.Errorf("marker %q: %w", s, err)
	}
	return r, nil
}
