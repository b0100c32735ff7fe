package classify

import "strings"

// pytest concludes what the reports say about the rule that decided.
func (s *Scanner) pytest(root int) *Pytest {
	if !s.config.Pytest {
		return nil
	}
	p := &Pytest{}
	for _, st := range s.streams {
		r := &st.tests
		p.Failed = max(p.Failed, r.failed, len(r.blocks), len(r.live), len(r.summary))
	}
	if root < 0 {
		return p
	}
	at, class := s.tallies[root].at, s.prog.entries[root].rule.Class
	if at.report.byProgress(p, at, class) || at.report.byBlocks(p, at, class) {
		return p
	}
	p.Root = at.node
	for i, id := range at.report.summary {
		if id == at.node {
			p.AfterRoot = len(at.report.summary) - i - 1
			break
		}
	}
	return p
}

// byProgress takes root and order from pytest -v's lines, which come as the tests
// end; without a failing test of the class there it returns false.
func (r *report) byProgress(p *Pytest, at place, class Class) bool {
	decisive := map[string]bool{}
	for _, b := range r.blocks {
		if b.class == class {
			decisive[b.name] = true
		}
	}
	for i, b := range r.live {
		if b.name != at.node && !decisive[headingOf(b.name)] {
			continue
		}
		p.Root = b.name
		for _, later := range r.live[i+1:] {
			if later.worker == b.worker {
				p.AfterRoot++
			}
		}
		return true
	}
	return false
}

// byBlocks takes root and order from the headings below FAILURES and ERRORS.
// Errors in fixtures are printed first, but a failure of the same class came
// before them: a fixture works until the device is broken.
func (r *report) byBlocks(p *Pytest, at place, class Class) bool {
	root := at.block
	for i, b := range r.blocks {
		if !b.errors && b.class == class {
			root = i
			break
		}
	}
	if root < 0 {
		return false
	}
	p.Root = r.resolve(root)
	for i, b := range r.blocks {
		later := b.errors == r.blocks[root].errors && i > root || b.errors && !r.blocks[root].errors && b.class > None
		if later && b.worker == r.blocks[root].worker {
			p.AfterRoot++
		}
	}
	return true
}

// headingOf writes a node id as pytest heads the test's failure: without the file,
// "TestClass.test[case]" for "TestClass::test[case]".
func headingOf(id string) string {
	_, name, _ := strings.Cut(id, "::")
	head, params, found := strings.Cut(name, "[")
	head = strings.ReplaceAll(head, "::", ".")
	if found {
		head += "[" + params
	}
	return head
}

// resolve returns the node id of block i: the n-th of the summary with its name for
// the n-th block of that name, the name itself without one.
func (r *report) resolve(i int) string {
	name := r.blocks[i].name
	skip := 0
	for _, b := range r.blocks[:i] {
		if b.name == name {
			skip++
		}
	}
	found := name
	for _, id := range r.summary {
		if headingOf(id) == name {
			found = id
			if skip == 0 {
				break
			}
			skip--
		}
	}
	return found
}
