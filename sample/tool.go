package sample

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Tool is one way to ask a vendor's devices, and how the answer is read: the
// [[telemetry]] and [[list]] tables of a backend file.
type Tool struct {
	// Argv is the command. An argument {dev} becomes the chosen devices; when none
	// is chosen, or they can't be handed to the tool, it is dropped together with
	// the flag before it and the answer is filtered.
	Argv []string `toml:"argv"`
	// Paths are directories searched after PATH.
	Paths []string `toml:"paths"`
	// Pin is what an entry must match to stand for {dev}; absent: an integer.
	Pin string `toml:"pin"`
	// Join puts several devices into {dev}: "," in one argument, " " in one each.
	// Absent: the tool takes one device only.
	Join string `toml:"join"`
	// Pinned: this command makes sense for chosen devices only.
	Pinned bool `toml:"pinned"`

	// Formats are tried in order, until one finds a device:
	// csv, json, xml, columns, indent, sections, lines; or sysfs or host, which
	// read files instead of running Argv.
	Formats []string `toml:"formats"`
	// Recognise must be found in the output and Reject must not: tools of several
	// vendors share a name.
	Recognise string `toml:"recognise"`
	Reject    string `toml:"reject"`
	// Stop ends the reading at the line that it matches, such as the title of a
	// process table whose rows look like device rows.
	Stop string `toml:"stop"`
	// Fields names, for index, uuid, name, arch, card, chip and each value of a
	// Reading, the keys of the output, best first; the first with a usable value
	// counts. "*.key" is a key anywhere in a tree, "key*" one that begins so.
	// Absent: a key of the field's own name (a named group of Line).
	Fields map[string][]string `toml:"fields"`

	// Devices says where json and xml hold devices: a member's or element's name,
	// or a regexp starting with ^ for members that are devices themselves, whose
	// first group is the index; [] is a list that is the whole output.
	Devices []string `toml:"devices"`
	// Headerless lists column names, by comma, for csv without a header; the list
	// with as many names as a row has cells is used. Lists in Argv come first.
	Headerless []string `toml:"headerless"`
	// Start is the line on which a device begins in indent, with named groups.
	Start string `toml:"start"`
	// Line are patterns with named groups: the first begins a device, each
	// following one adds to it. With groups key and value (and index or none) the
	// lines are gathered by index instead.
	Line []string `toml:"line"`
	// Spread names the value that belongs to a whole card and is told in a part of
	// its own (sections): the first chip without one gets it.
	Spread string `toml:"spread"`

	// Lost is text, LostExit exit codes, by which the tool says that a device fell
	// off the bus or needs a reset.
	Lost     string `toml:"lost"`
	LostExit []int  `toml:"lost_exit"`

	// Map translates the mask's numbering into the tool's own, where they differ.
	Map *Map `toml:"map"`
	// Extra are further questions, one per card of the devices read, for values
	// that the first answer lacks; {card} in their Argv is the card.
	Extra []Tool `toml:"extra"`
}

// Map is a listing that tells both numberings of a device.
type Map struct {
	Argv []string `toml:"argv"`
	// When is what some entry of the mask must match for the mapping to be needed.
	When string `toml:"when"`
	// Line are patterns with the groups card and index (or uuid), and chip where a
	// card has several; a group stays in force until it is matched again.
	Line []string `toml:"line"`
}

// fieldNames are the keys that Tool.Fields may have.
var fieldNames = [...]string{"index", "uuid", "name", "arch", "card", "chip",
	"sm_clock_mhz", "mem_clock_mhz", "temp_c", "power_w", "util_pct"}

// Check reports the first thing in t that can never work.
func (t Tool) Check() error {
	if len(t.Formats) == 0 {
		return fmt.Errorf("formats is empty: name at least one of csv, json, xml, columns, indent, sections, lines, sysfs, host")
	}
	if len(t.Argv) == 0 && !t.has("host") && !t.has("sysfs") {
		return fmt.Errorf("argv is empty: name the tool and its arguments")
	}
	for _, f := range t.Formats {
		if f != "host" && f != "sysfs" && parserOf(f) == nil {
			return fmt.Errorf("unknown format %q", f)
		}
	}
	for name := range t.Fields {
		if !slices.Contains(fieldNames[:], name) {
			return fmt.Errorf("unknown field %q: use one of %s", name, strings.Join(fieldNames[:], ", "))
		}
	}
	patterns := append([]string{t.Pin, t.Recognise, t.Reject, t.Stop, t.Start, t.Lost}, t.Line...)
	if t.Map != nil {
		patterns = append(append(patterns, t.Map.When), t.Map.Line...)
	}
	for _, d := range t.Devices {
		if strings.HasPrefix(d, "^") {
			patterns = append(patterns, d)
		}
	}
	for _, p := range patterns {
		if _, err := regexp.Compile(p); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	for _, e := range t.Extra {
		if err := e.Check(); err != nil {
			return fmt.Errorf("extra: %w", err)
		}
	}
	return nil
}

func (t Tool) has(format string) bool { return slices.Contains(t.Formats, format) }

// arguments returns Argv with {dev} filled in or dropped; nil when the tool is to
// be asked for chosen devices only and there are none.
func (t Tool) arguments(devices []string) []string {
	ok := len(devices) == 1 || len(devices) > 1 && t.Join != ""
	pin := t.Pin
	if pin == "" {
		pin = `\d+`
	}
	whole := regexp.MustCompile(`^(?:` + pin + `)$`)
	for _, d := range devices {
		ok = ok && whole.MatchString(d)
	}
	if t.Pinned && !ok {
		return nil
	}
	argv := []string{}
	for _, a := range t.Argv {
		switch {
		case a != "{dev}":
			argv = append(argv, a)
		case ok && t.Join == " ":
			argv = append(argv, devices...)
		case ok:
			argv = append(argv, strings.Join(devices, t.Join))
		case len(argv) > 1 && strings.HasPrefix(argv[len(argv)-1], "-"):
			argv = argv[:len(argv)-1]
		}
	}
	return argv
}
