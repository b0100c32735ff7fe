package classify

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// failure is one test's part of a report as pytest prints it.
func failure(heading, worker, text string) string {
	if worker != "" {
		worker = "[" + worker + "] linux -- Python 3.11.2 /usr/bin/python3\n"
	}
	return fmt.Sprintf("%s %s %s\n%s\n    def test():\n        quoted = \"unspecified launch failure\"\n>       run()\nE       %s\n\ntest_op.py:9: RuntimeError\n",
		strings.Repeat("_", 30), heading, strings.Repeat("_", 30), worker, text)
}

const (
	fatalText   = "RuntimeError: GPU error: unspecified launch failure"
	plainText   = "AssertionError: unequal"
	failures    = "=================================== FAILURES ===================================\n"
	errorsTitle = "==================================== ERRORS ====================================\n"
	summary     = "=========================== short test summary info ============================\n"
)

func TestPytest(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Pytest
	}{
		{"no failure", "test_op.py ...\n===== 3 passed in 0.1s =====\n", Pytest{}},
		{
			"headings", "test_op.py F.FF\n" + failures + failure("test_a", "", plainText) + failure("TestB.test_b[f16-a b]", "", fatalText) + failure("test_c", "", fatalText) + summary +
				"FAILED test_op.py::test_a - AssertionError: unequal\nFAILED test_op.py::TestB::test_b[f16-a b] - RuntimeError: GPU error: unspec...\n" +
				"FAILED test_op.py::test_c - RuntimeError: GPU error: unspecified la...\n========= 3 failed, 1 passed in 0.1s =========\n",
			Pytest{Root: "test_op.py::TestB::test_b[f16-a b]", Failed: 3, AfterRoot: 1},
		},
		{
			"same name twice", failures + failure("test_a", "", plainText) + failure("test_a", "", fatalText) + summary +
				"FAILED x/test_1.py::test_a - AssertionError\nFAILED x/test_2.py::test_a - RuntimeError\n==== 2 failed in 1s ====\n",
			Pytest{Root: "x/test_2.py::test_a", Failed: 2},
		},
		{
			"fixture error after the failure", errorsTitle + failure("ERROR at setup of test_f", "", fatalText) + failures + failure("test_a", "", fatalText) + summary +
				"FAILED test_op.py::test_a - x\nERROR test_op.py::test_f - x\n==== 1 failed, 2 passed, 1 error in 0.04s ====\n",
			Pytest{Root: "test_op.py::test_a", Failed: 2, AfterRoot: 1},
		},
		{
			"workers are processes of their own", failures + failure("test_a", "gw0", plainText) + failure("test_b", "gw1", fatalText) + failure("test_c", "gw0", fatalText) + failure("test_d", "gw1", fatalText) +
				summary + "FAILED test_op.py::test_b - x\n==== 4 failed in 1s ====\n",
			Pytest{Root: "test_op.py::test_b", Failed: 4, AfterRoot: 1},
		},
		{
			"order of -v", "test_op.py::test_z FAILED [ 25%]\ntest_op.py::test_f ERROR [ 50%]\ntest_op.py::test_a FAILED [ 75%]\ntest_op.py::test_b PASSED [100%]\n" +
				errorsTitle + failure("ERROR at setup of test_f", "", fatalText) + failures + failure("test_z", "", plainText) + failure("test_a", "", fatalText),
			Pytest{Root: "test_op.py::test_f", Failed: 3, AfterRoot: 1},
		},
		{
			"order of -v with workers", "[gw0] [ 20%] FAILED test_op.py::test_a \n[gw1] [ 40%] FAILED test_op.py::test_b \n[gw0] [ 60%] FAILED test_op.py::test_c \n" +
				failures + failure("test_a", "gw0", fatalText) + failure("test_b", "gw1", fatalText) + failure("test_c", "gw0", fatalText),
			Pytest{Root: "test_op.py::test_a", Failed: 3, AfterRoot: 1},
		},
		{
			"summary alone", summary + "FAILED test_op.py::test_a - AssertionError\nFAILED test_op.py::test_b - RuntimeError: GPU error: unspecified lau...\nFAILED test_op.py::test_c - x\n==== 3 failed in 1s ====\n",
			Pytest{Root: "test_op.py::test_b", Failed: 3, AfterRoot: 1},
		},
		{"ended by the error", "test_op.py::test_a PASSED\ntest_op.py::test_b " + fatalText + "\nFatal Python error: Aborted\n", Pytest{Root: "test_op.py::test_b"}},
		{"colour", failures + failure("\x1b[1m\x1b[31mtest_a\x1b[0m", "", fatalText) + "\x1b[31m==== \x1b[1m1 failed\x1b[0m in 1s ====\x1b[0m\n", Pytest{Root: "test_a", Failed: 1}},
	} {
		config := testConfig()
		config.Pytest = true
		r := classifyText(t, config, c.text)
		if r.Pytest == nil || !reflect.DeepEqual(*r.Pytest, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, r.Pytest, c.want)
		}
	}
}

func TestPytestSourceIsNoEvidence(t *testing.T) {
	r := classifyText(t, testConfig(), failures+failure("test_a[unspecified launch failure]", "", plainText))
	if r.Class != None {
		t.Errorf("got %+v", r.Root)
	}
	r = classifyText(t, testConfig(), failures+failure("test_a", "", plainText)+"----------- Captured stdout call -----------\n    GPU error: unspecified launch failure\n")
	if r.Class != Fatal {
		t.Errorf("captured output counts, got %v", r.Class)
	}
}
