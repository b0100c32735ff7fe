package classify

import (
	"bytes"
	"sort"
	"strings"
)

// foreignModule is printed by the ZL pytest plugin when modules of a vendor other
// than the active one are loaded: "FOREIGN_VENDOR_MODULE active=A loaded=B,C".
const foreignModule = "foreign_vendor_module"

// backendPath is where FlagGems keeps its vendors' packages, _<vendor> each; they
// are also imported as top-level modules of that name.
const backendPath = "flag_gems/runtime/backend/_"

// foreignTexts returns the texts that lead to another vendor's code.
func foreignTexts(vendors []string) []string {
	texts := []string{foreignModule, backendPath}
	for _, v := range vendors {
		texts = append(texts, "_"+v+".ops", "_"+v+"/ops/")
	}
	return texts
}

// foreignLine notes the vendors whose modules a line of output names.
func (s *Scanner) foreignLine(low []byte) {
	if _, list, ok := bytes.Cut(low, []byte(foreignModule)); ok {
		if _, loaded, ok := bytes.Cut(list, []byte("loaded=")); ok {
			loaded, _, _ = bytes.Cut(loaded, []byte(" "))
			for _, v := range strings.Split(string(loaded), ",") {
				s.addForeign(v)
			}
		}
		return
	}
	frame := bytes.Contains(low, []byte(`file "`)) || bytes.Contains(low, []byte(`file \"`)) || bytes.Contains(low, []byte(".py:"))
	for rest := low; frame; {
		_, after, ok := bytes.Cut(rest, []byte(backendPath))
		if !ok {
			break
		}
		end := 0
		for end < len(after) && isWord(after[end]) {
			end++
		}
		if end < len(after) && after[end] == '/' {
			s.addForeign(string(after[:end]))
		}
		rest = after
	}
	for _, v := range s.prog.vendors {
		for _, t := range []string{"_" + v + ".ops", "_" + v + "/ops/"} {
			at := find(low, []byte(t), 0)
			if frame && at >= 0 && (at == 0 || !isWord(low[at-1])) {
				s.addForeign(v)
			}
		}
	}
}

func (s *Scanner) addForeign(vendor string) {
	const most = 64 // there are fewer vendors
	vendor = strings.Trim(vendor, " \t,;")
	if vendor == "" || strings.EqualFold(vendor, s.config.Vendor) || len(s.foreign) >= most || len(vendor) > most {
		return
	}
	if s.foreign == nil {
		s.foreign = map[string]bool{}
	}
	s.foreign[strings.ToValidUTF8(vendor, "")] = true
}

// foreignVendors returns what was noted, sorted.
func (s *Scanner) foreignVendors() []string {
	out := []string{}
	for v := range s.foreign {
		out = append(out, v)
	}
	sort.Strings(out)
	return out
}
