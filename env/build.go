package env

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is one variable to set for the command.
type Setting struct {
	Name  string `toml:"name"`
	Value string `toml:"value"`
	// UnlessSet leaves a value alone that the caller's environment has.
	UnlessSet bool `toml:"unless_set"`
}

// Plan says what the command's environment must be.
type Plan struct {
	// Visibility lists the chosen backend's variables.
	Visibility []Variable
	// Mask is written to them; nil leaves them unset.
	Mask Mask
	// Set lists further variables, in the order in which they are appended.
	Set []Setting
	// Clear names further variables to remove, unless they are set.
	Clear []string
	// Keep names variables that are left alone, whatever else is said.
	Keep []string
}

// Change is one variable whose value the command sees differently; nil means unset.
type Change struct {
	Name   string  `json:"name"`
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// Build returns the command's environment and what differs from environ, which
// is left untouched. Entries that are neither cleared nor set keep their bytes
// and their order, odd ones too; what is set comes last.
func Build(environ []string, p Plan) ([]string, []Change) {
	cleared := map[string]bool{}
	for _, k := range Variables() {
		cleared[k.Name] = k.Tier != Reported
	}
	for _, n := range p.Clear {
		cleared[n] = true
	}
	set := settings(environ, p)
	for _, s := range set {
		cleared[s.Name] = true
	}
	for _, n := range p.Keep {
		delete(cleared, n)
	}
	set = slices.DeleteFunc(set, func(s Setting) bool { return slices.Contains(p.Keep, s.Name) })

	out := make([]string, 0, len(environ)+len(set))
	before := map[string]string{}
	var order []string
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !cleared[name] {
			out = append(out, kv)
			continue
		}
		if _, dup := before[name]; !dup {
			before[name] = value
			order = append(order, name)
		}
	}
	after := map[string]string{}
	for _, s := range set {
		out = append(out, s.Name+"="+s.Value)
		after[s.Name] = s.Value
		if _, had := before[s.Name]; !had {
			order = append(order, s.Name)
		}
	}
	return out, changes(order, before, after)
}

// settings resolves the plan to the variables that are really set. A later
// setting of the same name wins.
func settings(environ []string, p Plan) []Setting {
	var set []Setting
	add := func(s Setting) {
		set = slices.DeleteFunc(set, func(o Setting) bool { return o.Name == s.Name })
		set = append(set, s)
	}
	if p.Mask != nil {
		for _, v := range p.Visibility {
			if !v.ReadOnly && !v.Under {
				add(Setting{Name: v.Name, Value: v.Value(p.Mask)})
			}
		}
	}
	for _, s := range p.Set {
		if s.UnlessSet {
			if value, ok := Lookup(environ, s.Name); ok {
				s.Value = value
			}
		}
		add(s)
	}
	return set
}

func changes(order []string, before, after map[string]string) []Change {
	list := []Change{}
	for _, name := range order {
		b, had := before[name]
		a, has := after[name]
		if had && has && a == b {
			continue
		}
		c := Change{Name: name}
		if had {
			c.Before = &b
		}
		if has {
			c.After = &a
		}
		list = append(list, c)
	}
	return list
}

// Present returns the reported variables (tier 3) that environ has, as
// NAME=VALUE with the reason.
func Present(environ []string) []string {
	var list []string
	for _, k := range Variables() {
		if k.Tier != Reported {
			continue
		}
		if v, ok := Lookup(environ, k.Name); ok {
			list = append(list, fmt.Sprintf("%s=%s (%s)", k.Name, v, k.Why))
		}
	}
	return list
}

// Choice is the outcome of Choose.
type Choice struct {
	// Mask is the list of devices for the command; nil leaves all visible.
	Mask Mask
	// Warning is one line for the user, or empty.
	Warning string
}

// Choose decides which devices the command may see. Device is the user's list,
// "none", or empty for the inherited mask. Inside a scheduler's allocation,
// named by the variable that proves it, every device must be in the inherited
// mask. Same reports whether two entries name one device although they are
// written differently (an index and a UUID); it may be nil.
func Choose(vars []Variable, environ []string, device, allocation string, same func(a, b string) bool) (Choice, error) {
	inherited, err := Inherited(vars, environ)
	if err == nil && inherited == nil && allocation != "" {
		inherited, err = quartet(vars, environ)
	}
	switch {
	case device == "" || err != nil && allocation != "":
		return Choice{Mask: inherited}, err
	case device == "none":
		return Choice{Mask: Mask{}}, nil
	case len(vars) == 0:
		return Choice{}, fmt.Errorf("--device %s: this backend has no visibility variable: leave --device out", device)
	}
	mask, err2 := vars[0].Parse(device)
	if err2 != nil {
		return Choice{}, fmt.Errorf("--device %w", err2)
	}
	if inherited == nil { // also an inherited mask that cannot be read: the user's list replaces it
		return Choice{Mask: mask}, nil
	}
	for _, e := range mask {
		inside := slices.ContainsFunc(inherited, func(i string) bool { return i == e || same != nil && same(i, e) })
		if inside {
			continue
		}
		if allocation != "" {
			return Choice{}, fmt.Errorf("--device %s: device %s is outside the allocation (%s): its mask is %s", device, e, allocation, inherited)
		}
		return Choice{Mask: mask, Warning: fmt.Sprintf("--device %s leaves the inherited mask %s", device, inherited)}, nil
	}
	return Choice{Mask: mask}, nil
}

// quartet reads the list that Slurm writes to four variables at once where it
// was not told the vendor (gres.conf without Flags): then it is the allocation
// of any backend, also of one whose own variable Slurm does not know.
func quartet(vars []Variable, environ []string) (Mask, error) {
	if len(vars) == 0 {
		return nil, nil
	}
	value, ok := Lookup(environ, "CUDA_VISIBLE_DEVICES")
	for _, n := range []string{"ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"} {
		if v, has := Lookup(environ, n); !ok || !has || v != value {
			return nil, nil
		}
	}
	return vars[0].Inherit(value)
}
