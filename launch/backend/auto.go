package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Head is what --backend auto needs to know of a backend.
type Head struct {
	Name  string
	Nodes []string // globs of device nodes
	// PCI are vendor ids, such as "0x10de"; "0x8086:0x0380" is one class of the
	// vendor's devices, where another is in every desktop.
	PCI []string
}

// Auto finds the backend whose devices this machine has, under root (the file
// system's, or a test's): by device nodes, and where several backends have the
// same node, or none has one, by the PCI vendors of accelerators. A vendor tool on
// PATH proves nothing: tools are installed on machines of other vendors. why says
// what was found; it is an error when nothing is, or several backends are.
func Auto(all []Head, root string) (name, why string, err error) {
	vendors := pciVendors(root)
	byNode, node := map[string]string{}, []Head{}
	for _, h := range all {
		for _, g := range h.Nodes {
			if found, _ := filepath.Glob(filepath.Join("/", root, g)); len(found) > 0 {
				byNode[h.Name] = strings.TrimPrefix(found[0], strings.TrimSuffix(root, "/"))
				node = append(node, h)
				break
			}
		}
	}
	if len(node) == 1 {
		return node[0].Name, byNode[node[0].Name] + " exists", nil
	}
	candidates := node
	if len(node) == 0 {
		candidates = all
	}
	var match []Head
	for _, h := range candidates {
		if slices.ContainsFunc(h.PCI, func(id string) bool { return vendors[id] }) {
			match = append(match, h)
		}
	}
	switch {
	case len(match) == 1:
		return match[0].Name, "a PCI device of vendor " + strings.Join(match[0].PCI, ", "), nil
	case len(match) == 0 && len(node) == 0:
		return "", "", fmt.Errorf("--backend auto: no device node or PCI device of a known vendor: name the backend, or cpu")
	case len(match) == 0:
		match = node
	}
	names := []string{}
	for _, h := range match {
		names = append(names, h.Name)
	}
	return "", "", fmt.Errorf("--backend auto: this machine has devices of %s: name one of them", strings.Join(names, ", "))
}

// pciVendors returns the vendor ids of display controllers, processing accelerators
// and co-processors (class 03, 12 and 0b40): vendors sell other devices as well.
func pciVendors(root string) map[string]bool {
	vendors := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join("/", root, "sys/bus/pci/devices/*/vendor"))
	for _, f := range files {
		vendor, err := os.ReadFile(f)
		class, classErr := os.ReadFile(filepath.Join(filepath.Dir(f), "class"))
		c := strings.TrimSpace(string(class))
		if err != nil || classErr == nil && !strings.HasPrefix(c, "0x03") && !strings.HasPrefix(c, "0x12") && !strings.HasPrefix(c, "0x0b40") {
			continue
		}
		id := strings.TrimSpace(string(vendor))
		vendors[id] = true
		if len(c) >= 6 {
			vendors[id+":"+c[:6]] = true
		}
	}
	return vendors
}
