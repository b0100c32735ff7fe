package env

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variable is one visibility variable as its runtime reads it: one
// [[visibility]] table of a backend file.
type Variable struct {
	// Name of the variable.
	Name string `toml:"name"`
	// Forms lists what an entry may be: "index" (a decimal integer) or a regular
	// expression that the whole entry must match.
	Forms []string `toml:"forms"`
	// Alone is a form whose entry must be the only one (a MIG instance).
	Alone string `toml:"alone"`
	// None is the value that hides every device.
	None string `toml:"none"`
	// Order is "ascending" where the runtime wants ascending integers.
	Order string `toml:"order"`
	// ReadOnly variables are honoured when inherited but never written.
	ReadOnly bool `toml:"read_only"`
	// Under marks a lower layer: the devices that it leaves are renumbered from
	// 0 for the layer above. It is composed into the mask and never written.
	Under bool `toml:"under"`
}

// Mask is an ordered list of devices. A nil Mask means every device, an empty
// one no device.
type Mask []string

// String returns the entries joined by commas, or "none".
func (m Mask) String() string {
	if m != nil && len(m) == 0 {
		return "none"
	}
	return strings.Join(m, ",")
}

const indexForm = "index"

// Check reports what is wrong with the variable's description.
func (v Variable) Check() error {
	if v.Name == "" || strings.ContainsAny(v.Name, "= ") {
		return fmt.Errorf("visibility: name %q is no variable name", v.Name)
	}
	if len(v.Forms) == 0 {
		return fmt.Errorf("visibility %s: forms is empty", v.Name)
	}
	if v.Order != "" && v.Order != "ascending" {
		return fmt.Errorf("visibility %s: order %q: only \"ascending\" is known", v.Name, v.Order)
	}
	for _, f := range append(slices.Clone(v.Forms), v.Alone) {
		if _, err := regexp.Compile(f); err != nil {
			return fmt.Errorf("visibility %s: form %q: %w", v.Name, f, err)
		}
	}
	return nil
}

// accepts says in words what entries the variable takes.
func (v Variable) accepts() string {
	var words []string
	for _, f := range v.Forms {
		if f == indexForm {
			words = append(words, "an index such as 0")
		} else {
			words = append(words, "an entry like "+f)
		}
	}
	return strings.Join(words, " or ")
}

// entry returns the entry as the runtime wants it, and whether it is one.
func (v Variable) entry(s string) (string, bool) {
	for _, f := range v.Forms {
		if f == indexForm {
			// Five digits are far above any machine and far below overflow.
			if n, err := strconv.ParseUint(s, 10, 32); err == nil && len(s) <= 5 {
				return strconv.FormatUint(n, 10), true
			}
		} else if fullMatch(f, s) {
			return s, true
		}
	}
	return "", false
}

func fullMatch(form, s string) bool {
	re, err := regexp.Compile("^(?:" + form + ")$")
	return err == nil && re.MatchString(s)
}

// Parse reads a list of devices that a person wrote. Blanks around entries are
// dropped, and the order is put right where the runtime has only one.
func (v Variable) Parse(list string) (Mask, error) {
	mask := Mask{}
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		e, ok := v.entry(part)
		if !ok {
			return nil, fmt.Errorf("%q: %s takes %s, several with commas, or none", part, v.Name, v.accepts())
		}
		mask = append(mask, e)
	}
	return v.settle(mask)
}

// Inherit reads the value that the caller's environment has, as the runtime
// would: an empty value hides every device, and so does a first entry that
// cannot be one (-1, Slurm's NoDevFiles); a later negative entry ends the list.
func (v Variable) Inherit(value string) (Mask, error) {
	if strings.TrimSpace(value) == "" || (v.None != "" && value == v.None) {
		return Mask{}, nil
	}
	mask := Mask{}
	for i, part := range strings.Split(value, ",") {
		part = strings.TrimSpace(part)
		e, ok := v.entry(part)
		switch {
		case ok:
			mask = append(mask, e)
		case i == 0 && (strings.HasPrefix(part, "-") || part == "NoDevFiles"):
			return mask, nil
		case strings.HasPrefix(part, "-"):
			return v.settle(mask)
		default:
			return nil, fmt.Errorf("%s=%s: %q is no device here: it takes %s", v.Name, value, part, v.accepts())
		}
	}
	return v.settle(mask)
}

// settle refuses what the runtime would answer with no device at all, and sorts
// where it would refuse any other order.
func (v Variable) settle(mask Mask) (Mask, error) {
	seen := map[string]bool{}
	for _, e := range mask {
		if seen[e] {
			return nil, fmt.Errorf("%s names device %s twice: name each device once", v.Name, e)
		}
		seen[e] = true
		if v.Alone != "" && len(mask) > 1 && fullMatch(v.Alone, e) {
			return nil, fmt.Errorf("%s: %s must be the only entry: the runtime shows one such instance at a time", v.Name, e)
		}
	}
	if v.Order == "ascending" {
		slices.SortFunc(mask, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		})
	}
	return mask, nil
}

// Value returns what to write for the mask.
func (v Variable) Value(mask Mask) string {
	if len(mask) == 0 {
		return v.None
	}
	return strings.Join(mask, ",")
}

// Inherited reads the backend's own mask from the caller's environment. A lower
// layer is composed with the one above it into one list in the numbering of
// the lower one. The result is nil when no variable of the backend is set.
func Inherited(vars []Variable, environ []string) (Mask, error) {
	var under, above Mask
	var underName, aboveName, aboveValue string
	for _, v := range vars {
		value, ok := Lookup(environ, v.Name)
		if !ok || (v.Under && under != nil) || (!v.Under && above != nil) {
			continue // the runtime looks no further than the first that is set
		}
		mask, err := v.Inherit(value)
		if err != nil {
			return nil, err
		}
		if v.Under {
			under, underName = mask, v.Name+"="+value
		} else {
			above, aboveName, aboveValue = mask, v.Name, value
		}
	}
	if under == nil || above == nil {
		if above == nil {
			return under, nil
		}
		return above, nil
	}
	return compose(under, above, underName, aboveName+"="+aboveValue)
}

// compose resolves the upper layer's positions in the lower layer's list.
func compose(under, above Mask, underText, aboveText string) (Mask, error) {
	mask := Mask{}
	for _, e := range above {
		n, err := strconv.Atoi(e)
		if err != nil { // not a position: a UUID names the device itself
			mask = append(mask, e)
			continue
		}
		if n >= len(under) {
			break // the runtime stops reading here
		}
		mask = append(mask, under[n])
	}
	if len(mask) == 0 && len(above) > 0 {
		return nil, fmt.Errorf("%s counts within %s and leaves no device: unset one of them", aboveText, underText)
	}
	return mask, nil
}

// Lookup returns the value of a variable as getenv would: the first entry of
// that name.
func Lookup(environ []string, name string) (string, bool) {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}
