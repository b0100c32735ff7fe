package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs scripts/testdata/*.txtar against the real static binary,
// with fake vendor tools on PATH that replay recordings.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	out, err := exec.Command("scripts/build", filepath.Join(bin, "zlexec")).CombinedOutput()
	if err != nil {
		t.Fatalf("scripts/build: %v\n%s", err, out)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "scripts/testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+":"+e.Getenv("PATH"))
			e.Setenv("ROOT", root)
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if module, ok := strings.CutPrefix(cond, "python:"); ok {
				return exec.Command("/usr/bin/python3", "-c", "import "+module).Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "record": record},
	})
}

// code runs a command and asserts its exact exit status, which exec cannot:
// code N command [argument …]. 128+n stands for death by signal n.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [argument …]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		ws := exit.Sys().(syscall.WaitStatus)
		if got = ws.ExitStatus(); ws.Signaled() {
			got = 128 + int(ws.Signal())
		}
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// record asserts values in the last line of a JSON-lines file:
// record FILE path=value …, where the path's parts are joined by dots and the
// value is JSON, or a text without quotes. "!" in front asserts the opposite.
func record(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	var doc any
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &doc))
	for _, a := range args[1:] {
		path, want, _ := strings.Cut(a, "=")
		at := doc
		for part := range strings.SplitSeq(path, ".") {
			switch v := at.(type) {
			case map[string]any:
				at = v[part]
			case []any:
				i, err := strconv.Atoi(part)
				if at = nil; err == nil && i < len(v) {
					at = v[i]
				}
			default:
				at = nil
			}
		}
		got, err := json.Marshal(at)
		ts.Check(err)
		if s, ok := at.(string); ok && !strings.HasPrefix(want, `"`) {
			got = []byte(s)
		}
		if (string(got) == want) == neg {
			ts.Fatalf("%s is %s, want %s (negated: %v)", path, got, want, neg)
		}
	}
}

// TestPlainAgreesWithKong: where the short way reads a command line, kong must
// read the same.
func TestPlainAgreesWithKong(t *testing.T) {
	words := []string{"-b", "--backend", "cuda", "--backend=cuda", "-q", "--quiet", "-v", "-d", "0,1", "--device=none", "--telemetry", "off",
		"--telemetry=auto", "--scan", "both", "--strict", "--lenient", "--timeout", "30m", "--timeout=1", "--", "pytest", "-x", "-", "",
		"--exec", "--record", "r.jsonl", "--keep", "A", "--marker", "fatal=x", "--json", "--list-devices", "--op=x", "-bcuda", "--no-quiet",
		"--quiet=false", "--version", "--retry-poisoned", "--deny-capture", "a,b", "--grace", "-1s", "--command", "--help", "-h", "--bogus"}
	agreed := 0
	check := func(args []string) {
		fast, ok := plain(args, nil)
		if !ok {
			return
		}
		slow, done, err := viaKong(args, io.Discard)
		if err != nil || done || fmt.Sprintf("%+v", fast) != fmt.Sprintf("%+v", slow) {
			t.Fatalf("%q:\nplain %+v\nkong  %+v, %v", args, fast, slow, err)
		}
		agreed++
	}
	for _, a := range words {
		for _, b := range words {
			check([]string{a, b, "cmd"})
			check([]string{"-b", "cuda", a, b, "--", "cmd", "-q"})
		}
	}
	if agreed < 500 {
		t.Errorf("only %d command lines went the short way: the test shows nothing", agreed)
	}
	if _, ok := plain([]string{"-b", "cuda", "--", "x"}, []string{"ZLEXEC_SCAN=both"}); ok {
		t.Error("a variable in the place of a flag must be left to kong")
	}
}

// TestExitCodesInHelp holds --help and the README to the code's own table.
func TestExitCodesInHelp(t *testing.T) {
	var help bytes.Buffer
	if code := run([]string{"--help"}, &help, io.Discard); code != 0 {
		t.Fatalf("--help exits %d", code)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"80", "81", "82", "124", "125", "126", "127"} {
		if !strings.Contains(help.String(), word) {
			t.Errorf("--help does not say exit code %s", word)
		}
		if !strings.Contains(string(readme), "| "+word) && !strings.Contains(string(readme), word+" |") && !strings.Contains(string(readme), "/ "+word) {
			t.Errorf("README.md does not say exit code %s", word)
		}
	}
}

// TestImports holds the house's order: main, launch, launch/backend, then env,
// classify and sample, which do not know each other.
func TestImports(t *testing.T) {
	const module = "github.com/flagos-ai/zlexec"
	allowed := map[string][]string{
		"/env": nil, "/classify": nil, "/sample": nil,
		"/launch/backend": {"/env", "/classify", "/sample"},
		"/launch":         {"/launch/backend", "/env", "/classify", "/sample"},
	}
	for pkg, may := range allowed {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", module+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			own, isOwn := strings.CutPrefix(f[0], module)
			if isOwn && own != pkg && !slices.Contains(may, own) {
				t.Errorf("%s imports %s", pkg, own)
			}
			if !isOwn && f[1] == "false" && (pkg == "/env" || pkg == "/classify") {
				t.Errorf("%s imports %s: it needs the standard library alone", pkg, f[0])
			}
		}
	}
}
