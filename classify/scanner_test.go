package classify

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// testRules are a small set with every property a rule can have.
var testRules = []Rule{
	{ID: "t.illegal", Class: Fatal, Text: []string{"an illegal memory access was encountered"}, Name: []string{"ErrorIllegalAddress"}, Source: "test"},
	{ID: "t.launch", Class: Fatal, Text: []string{"unspecified launch failure"}, Source: "test"},
	{ID: "t.misaligned", Class: Fatal, Text: []string{"misaligned address"}, After: []string{"lead"}, Source: "test"},
	{ID: "t.number", Class: Fatal, Text: []string{"gpu error"}, Number: []int{700}, Source: "test"},
	{ID: "t.banner", Class: Fatal, Text: []string{"memory fault by gpu"}, Anywhere: true, Source: "test"},
	{ID: "t.timeout", Class: Fatal, Text: []string{"507048"}, After: []string{"lead"}, Seen: []string{"heartbeat lost"}, SeenClass: Recoverable, Source: "test"},
	{ID: "t.invalidated", Class: Poisoned, Text: []string{"error during capture"}, Source: "test"},
	{ID: "t.refused", Class: Recoverable, Text: []string{"when stream is capturing"}, Seen: []string{"terminate called"}, SeenClass: Poisoned, Source: "test"},
	{ID: "t.error", Class: Recoverable, Text: []string{"gpu error:"}, Unless: []string{"no error"}, Source: "test"},
	{ID: "t.footer", Ignore: "text", Text: []string{"an illegal memory access was encountered earlier is advice"}, Source: "test"},
	{ID: "t.passed", Ignore: "line", Text: []string{"passed"}, Match: `::.+ passed`, Source: "test"},
}

func testConfig() Config {
	return Config{Rules: func() ([]Rule, error) { return testRules, nil }, Vendor: "nvidia", Vendors: func() []string { return []string{"nvidia", "amd", "ascend"} }}
}

func classifyText(t testing.TB, c Config, text string) Result {
	t.Helper()
	r, err := ClassifyReader(c, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClassOfText(t *testing.T) {
	wall := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name, text string
		class      Class
		marker     string
		line       int
	}{
		{"empty", "", None, "", 0},
		{"plain", "all good\n", None, "", 0},
		{"sentence without a line feed", "one\ntwo\nRuntimeError: GPU error: an illegal memory access was encountered", Fatal, "t.illegal", 3},
		{"upper case", "GPU ERROR: AN ILLEGAL MEMORY ACCESS WAS ENCOUNTERED\n", Fatal, "t.illegal", 1},
		{"quoted in source", "x = \"an illegal memory access was encountered\"\n", None, "", 0},
		{"quoted behind a lead", "gpu failed with error 'an illegal memory access was encountered'\n", Fatal, "t.illegal", 1},
		{"quoted behind a file name", "gpu failure main.cu:12 'an illegal memory access was encountered'\n", Fatal, "t.illegal", 1},
		{"short text with lead", "[E] Error (716): misaligned address\n", Fatal, "t.misaligned", 1},
		{"short text without lead", "packed member: misaligned address\n", None, "", 0},
		{"number", "GPU error 700: x\n", Fatal, "t.number", 1},
		{"number in parentheses", "gpu error (code=700)\n", Fatal, "t.number", 1},
		{"another number", "gpu error rate 700\n", None, "", 0},
		{"longer number", "gpu error 7001\n", None, "", 0},
		{"enumerator", "Search for `xxErrorIllegalAddress' in https://example.org\n", Fatal, "t.illegal", 1},
		{"mention of an enumerator", "xxErrorIllegalAddress2 and the xxErrorIllegalAddress thing\n", None, "", 0},
		{"footer", "note: an illegal memory access was encountered earlier is advice\n", None, "", 0},
		{"footer glued to an error", "an illegal memory access was encountered, an illegal memory access was encountered earlier is advice\n", Fatal, "t.illegal", 1},
		{"ignored line", "a.py::test_x[unspecified launch failure] PASSED\n", None, "", 0},
		{"banner in an ignored line", "a.py::test_x PASSEDMemory fault by GPU node-1 a.py::test_y PASSED\n", Fatal, "t.banner", 1},
		{"traceback source", "  File \"x.py\", line 3, in f\n    raise E(an illegal memory access was encountered)\nE: x\n", None, "", 0},
		{"prefixed traceback source", "[rank0]:   File \"x.py\", line 3, in f\n[rank0]:     go(an illegal memory access was encountered)\n", None, "", 0},
		{"indented but not source", "Log:\n      an illegal memory access was encountered\n", Fatal, "t.illegal", 2},
		{"wrapped", "GPU error: an illegal memory\naccess was encountered\n", Fatal, "t.illegal", 1},
		{"colour inside", "GPU \x1b[31merror: an ill\x1b[0megal memory access was encountered\n", Fatal, "t.illegal", 1},
		{"link inside", "GPU error: an \x1b]8;;http://a/\x1b\\illegal\x1b]8;;\x07 memory access was encountered\n", Fatal, "t.illegal", 1},
		{"two bytes a letter", "\xff\xfeu\x00n\x00s\x00p\x00e\x00c\x00i\x00f\x00i\x00e\x00d\x00 \x00l\x00a\x00u\x00n\x00c\x00h\x00 \x00f\x00a\x00i\x00l\x00u\x00r\x00e\x00\n\x00", Fatal, "t.launch", 1},
		{"not UTF-8", "\xff\xfe GPU error: \xc3 unspecified launch failure\n", Fatal, "t.launch", 1},
		{"progress bar", "10%\r20%\r30% GPU error: x\r40%\nGPU error: y\n", Recoverable, "t.error", 1},
		{"windows", "a\r\nb\r\nGPU error: x\r\n", Recoverable, "t.error", 3},
		{"unless", "gpu error: no error\n", None, "", 0},
		{"escaped line feeds", `{"m": "File \"x\", line 3\n    raise\nGPU error: unspecified launch failure\n"}` + "\n", Fatal, "t.launch", 1},
		{"end of a long line", wall + " GPU error: unspecified launch failure", Fatal, "t.launch", 1},
		{"middle of a long line", wall + " GPU error: unspecified launch failure " + wall, Fatal, "t.launch", 1},
		{"after a long line", wall + "\nGPU error: unspecified launch failure\n", Fatal, "t.launch", 2},
		{"severity, not order", "GPU error: a\nerror during capture\nGPU error: b\nunspecified launch failure\n", Fatal, "t.launch", 4},
		{"seen lowers", "failed: 507048\nHeartbeat Lost\n", Recoverable, "t.timeout", 1},
		{"seen raises", "error when stream is capturing\nterminate called after\n", Poisoned, "t.refused", 1},
		{"cut by pytest", "FAILED a.py::test_x - RuntimeError: GPU error: an illegal mem...\n", Fatal, "t.illegal", 1},
		{"expected", "----- output of the child (expected) -----\nunspecified launch failure\n----- end -----\n", None, "", 0},
		{"a test's name", "===== tests/test_expected.py =====\nunspecified launch failure\n", Fatal, "t.launch", 2},
		{"after the expected part", "----- (expected) -----\nx\n----- end -----\nunspecified launch failure\n", Fatal, "t.launch", 4},
	} {
		r := classifyText(t, testConfig(), c.text)
		got := Hit{}
		if r.Root != nil {
			got = *r.Root
		}
		if r.Class != c.class || got.Marker != c.marker || got.LineNumber != c.line {
			t.Errorf("%s: got %v by %q in line %d, want %v by %q in line %d", c.name, r.Class, got.Marker, got.LineNumber, c.class, c.marker, c.line)
		}
	}
}

func TestCountsAndOtherwise(t *testing.T) {
	r := classifyText(t, testConfig(), "GPU error: a\nunspecified launch failure\nunspecified launch failure\nGPU error: misaligned address\n")
	if r.Counts != (Counts{Fatal: 3, Recoverable: 1}) {
		t.Errorf("counts: %+v", r.Counts)
	}
	if r.Otherwise == nil || r.Otherwise.Marker != "t.launch" || r.Otherwise.LineNumber != 3 {
		t.Errorf("otherwise: %+v", r.Otherwise)
	}
	b, err := json.Marshal(r.Root)
	if want := `{"class":"fatal","marker":"t.launch","line":"unspecified launch failure","line_number":2,"stream":"log"}`; err != nil || string(b) != want {
		t.Errorf("root: %s, %v", b, err)
	}
}

func TestStreamsKeepTheirOrder(t *testing.T) {
	s := New(testConfig())
	out, errs := s.Stream("stdout"), s.Stream("stderr")
	fmt.Fprint(out, "nothing\n")
	fmt.Fprint(errs, "unspecified launch failure\nmore\n")
	fmt.Fprint(out, "GPU error: misaligned address\n")
	if r := s.Result(); r.Root == nil || r.Root.Stream != "stderr" || r.Otherwise.Stream != "stdout" {
		t.Errorf("got %+v", r)
	}
	if n, err := errs.Write([]byte("late\n")); n != 5 || err != nil {
		t.Errorf("a late write: %d, %v", n, err)
	}
}

func TestRulesAreNotNeededWithoutOutput(t *testing.T) {
	s := New(Config{Rules: func() ([]Rule, error) { t.Error("called"); return nil, nil }})
	s.Stream("stderr")
	if r := s.Result(); r.Class != None || r.Root != nil {
		t.Errorf("got %+v", r)
	}
}

func TestRuleErrors(t *testing.T) {
	s := New(Config{Rules: func() ([]Rule, error) { return nil, fmt.Errorf("broken") }})
	fmt.Fprint(s.Stream("stderr"), "unspecified launch failure\n")
	if r := s.Result(); r.Class != None || s.Err() == nil {
		t.Errorf("got %+v, %v", r, s.Err())
	}
}

func TestExplain(t *testing.T) {
	c := testConfig()
	c.Explain = true
	r := classifyText(t, c, "suite::test_x unspecified launch failure PASSED\nGPU error: x\nok\n")
	if len(r.Events) != 2 || r.Events[0].Rule != "t.passed" || r.Events[0].Class != "ignored" || r.Events[1].Class != "recoverable" {
		t.Errorf("events: %+v", r.Events)
	}
}

func TestExtraMarker(t *testing.T) {
	rule, err := ParseMarker("poisoned=out of tea")
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Extra = []Rule{rule}
	if r := classifyText(t, c, "we are Out Of Tea today\n"); r.Class != Poisoned || r.Root.Marker != "marker:out_of_tea" {
		t.Errorf("got %+v", r)
	}
	for _, bad := range []string{"out of tea", "deadly=x y z", "fatal=", "fatal=ab", "none=abc"} {
		if _, err := ParseMarker(bad); err == nil {
			t.Errorf("ParseMarker(%q) must fail", bad)
		}
	}
}

func TestForeignVendors(t *testing.T) {
	r := classifyText(t, testConfig(), "FOREIGN_VENDOR_MODULE active=nvidia loaded=mthreads,amd\n"+
		"  File \"/opt/flag_gems/runtime/backend/_ascend/ops/add.py\", line 3, in add\n"+
		"  File \"/opt/flag_gems/runtime/backend/_nvidia/ops/add.py\", line 3, in add\n"+
		"unrelated _amd/ops/ text\n")
	if want := []string{"amd", "ascend", "mthreads"}; !reflect.DeepEqual(r.ForeignVendors, want) || r.Class != None {
		t.Errorf("got %v, %v", r.ForeignVendors, r.Class)
	}
}

func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "GPU error: x\n")
	z.Close()
	whole := b.Bytes()
	if r, err := ClassifyReader(testConfig(), bytes.NewReader(whole)); err != nil || r.Class != Recoverable {
		t.Errorf("got %v, %v", r.Class, err)
	}
	if _, err := ClassifyReader(testConfig(), bytes.NewReader(whole[:len(whole)-6])); err == nil {
		t.Error("a log that breaks off must be an error")
	}
}
