package scripts_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standIn plays zlexec for gpu-check: it runs the command, takes a class from the word
// after "device:" on its stderr, and writes a record. STANDIN says what it gets wrong.
const standIn = `#!/usr/bin/env python3
import json, os, signal, subprocess, sys
flaw = os.environ.get("STANDIN", "")
def reading():
    loaded = os.path.exists(os.environ["GPU_STATE"] + "/ON")
    device = dict(index="0", uuid="GPU-0a", name="A", sm_clock_mhz=1900 if loaded else 345, mem_clock_mhz=3201, temp_c=41, power_w=600 if loaded else 75.5, util_pct=99 if loaded else 0)
    if flaw == "lies": device["sm_clock_mhz"] += 500
    if flaw == "no power": device["power_w"] = None
    if flaw == "zero power": device["power_w"] = 0
    if flaw == "blind": return dict(state="timeout", detail="no answer in 5s", devices=[])
    return dict(state="ok", detail=None, devices=[device])
args = sys.argv[1:]
if "--version" in args: sys.exit(print("stand-in 1"))
if "--sample" in args: sys.exit(print(json.dumps(reading())))
command = args[args.index("--") + 1:]
before = reading()
run = subprocess.run(command, stderr=subprocess.PIPE, text=True)
sys.stderr.write(run.stderr)
word = run.stderr.partition("device:")[2].split()
known = {"fatal": 82, "poisoned": 81, "recoverable": 80}
found = word[0] if word and word[0] in known else "none"
signalled = run.returncode < 0
code = known[found] if found != "none" and run.returncode else run.returncode
ended = dict(code=None if signalled else run.returncode, signal=signal.Signals(-run.returncode).name if signalled else None, timed_out=False)
root = None if found == "none" else dict(marker="cuda." + word[1], line="device: " + " ".join(word))
record = dict(exit=ended, exit_code=code if code >= 0 else 128 - code, root=root, attempts=1, telemetry=dict(before=before, after=reading()))
record["class"] = found
if flaw != "no record" and "--record" in args:
    open(args[args.index("--record") + 1], "a").write(json.dumps(record) + "\n")
if code < 0: os.kill(os.getpid(), -code)
sys.exit(code)
`

// gpuCases need no GPU; TestGPUCheckFindsWhatIsWrong says what must become of each.
var gpuCases = map[string]string{
	"right.py":       "#: class = fatal\n#: marker = cuda.assert\n#: root = assert .*4096\nimport sys\nsys.exit('device: fatal assert of row 4096')\n",
	"signalled.py":   "#: class = none\n#: code = -6\n#: child = SIGABRT\nimport os\nos.abort()\n",
	"class.py":       "#: class = poisoned\nimport sys\nsys.exit('device: fatal assert')\n",
	"code.py":        "#: class = none\n#: code = 3\nimport sys\nsys.exit(4)\n",
	"marker.py":      "#: class = fatal\n#: marker = cuda.trap\nimport sys\nsys.exit('device: fatal assert')\n",
	"root.py":        "#: class = fatal\n#: root = misaligned\nimport sys\nsys.exit('device: fatal assert')\n",
	"printed.py":     "#: class = none\n#: stdout = works afterwards\nprint('nothing')\n",
	"blind.py":       "#: class = none\n#: env = STANDIN=blind\n",
	"power.py":       "#: class = none\n#: [no_power]\n#: env = 'STANDIN=no power'\n#: [zero_power]\n#: env = 'STANDIN=zero power'\n#: [any_power]\n#: env = 'STANDIN=no power'\n#: readings = any\n",
	"unrecorded.py":  "#: class = none\n#: env = 'STANDIN=no record'\n",
	"hangs.py":       "#: class = none\n#: limit = 2\n#: alone = yes\nimport time\ntime.sleep(60)\n",
	"lacks.py":       "#: class = none\n#: needs = no_such_module\n",
	"load.py":        "import os, sys, time\nscratch, state = sys.argv[1], os.environ['GPU_STATE']\nfor _ in range(600):\n    if os.path.exists(scratch + '/GO'): break\n    time.sleep(0.05)\nfor d in (state, scratch): open(d + '/ON', 'w').close()\nfor _ in range(600):\n    if os.path.exists(scratch + '/STOP'): break\n    time.sleep(0.05)\nos.remove(state + '/ON')\n",
	"not_a_case.txt": "",
}

const fakeSMI = `#!/bin/sh
case "$*" in
-L) echo "GPU 0: A (UUID: GPU-0a)" ;;
*name,driver*) echo "A, 580.1" ;;
*) if [ -e "$GPU_STATE/ON" ]; then echo "1900, 3201, 41, 600, 99"; else echo "345, 3201, 41, 75.5, 0"; fi ;;
esac
`

// gpuCheck is a directory with everything that gpu-check needs, none of it real.
type gpuCheck struct{ dir, out string }

func newGPUCheck(t *testing.T) gpuCheck {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3, in which gpu-check is written")
	}
	g := gpuCheck{dir: t.TempDir()}
	g.out = filepath.Join(g.dir, "out.json")
	for name, text := range gpuCases {
		if name != "load.py" && strings.HasSuffix(name, ".py") && !strings.Contains(text, "modes =") {
			text = "#: modes = bare\n" + text
		}
		g.file(t, "cases/"+name, text)
	}
	g.file(t, "zlexec", standIn)
	g.file(t, "bin/nvidia-smi", fakeSMI)
	return g
}

func (g gpuCheck) file(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run returns gpu-check's exit code, what it printed and the results by "case:mode".
func (g gpuCheck) run(t *testing.T, env string, args ...string) (code int, printed string, results map[string]gpuResult) {
	t.Helper()
	argv := append([]string{"gpu-check", filepath.Join(g.dir, "zlexec"), "--cases", filepath.Join(g.dir, "cases"), "--out", g.out}, args...)
	cmd := exec.Command("python3", argv...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(g.dir, "bin")+":"+os.Getenv("PATH"), "GPU_STATE="+g.dir, env)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	results = map[string]gpuResult{}
	text, err := os.ReadFile(g.out)
	if err != nil {
		return code, string(out), results
	}
	var document struct {
		Schema  string      `json:"schema"`
		Results []gpuResult `json:"results"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Schema != "zlexec-gpu-check/1" {
		t.Fatalf("result file: %v, schema %q", err, document.Schema)
	}
	for _, r := range document.Results {
		results[r.Case+":"+r.Mode] = r
	}
	return code, string(out), results
}

type gpuResult struct {
	Case, Mode, Outcome string
	Why                 []string
}

// What is right passes, and everything that differs is reported by its name.
func TestGPUCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	code, printed, results := newGPUCheck(t).run(t, "STANDIN=")
	want := map[string][2]string{ // outcome, and a part of the reason
		"right:bare":      {"pass", ""},
		"signalled:bare":  {"pass", ""},
		"class:bare":      {"fail", "class is 'fatal', must be 'poisoned'"},
		"code:bare":       {"fail", "exit code is 4, must be 3"},
		"marker:bare":     {"fail", "marker is 'cuda.assert', must be 'cuda.trap'"},
		"root:bare":       {"fail", "root is"},
		"printed:bare":    {"fail", "stdout is"},
		"blind:bare":      {"fail", "reading before: state is 'timeout' (no answer in 5s)"},
		"no_power:bare":   {"fail", "reading after: power_w is None"},
		"zero_power:bare": {"fail", "reading before: power_w is 0"},
		"any_power:bare":  {"pass", ""},
		"unrecorded:bare": {"fail", "wrote no record"},
		"hangs:bare":      {"fail", "had to be killed"},
		"lacks:bare":      {"skip", "no_such_module is not installed"},
	}
	for name, w := range want {
		r, ok := results[name]
		if why := strings.Join(r.Why, "; "); !ok || r.Outcome != w[0] || !strings.Contains(why, w[1]) || (w[1] == "" && why != "") {
			t.Errorf("%s: %q (%s), want %q (%s)", name, r.Outcome, why, w[0], w[1])
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, printed)
	}
	if !strings.Contains(printed, "skip: lacks:bare: no_such_module is not installed") {
		t.Errorf("the skipped case isn't named:\n%s", printed)
	}
}

func TestGPUCheckSelection(t *testing.T) {
	t.Parallel()
	g := newGPUCheck(t)
	if code, printed, results := g.run(t, "STANDIN=", "--only", "right", "--only", "signalled:bare"); code != 0 || len(results) != 2 {
		t.Errorf("two right cases: exit code %d, results %v\n%s", code, results, printed)
	}
	if code, printed, _ := g.run(t, "STANDIN=", "--only", "right:pytest"); code == 0 {
		t.Errorf("a case that isn't there passes:\n%s", printed)
	}
	if code, printed, _ := g.run(t, "STANDIN=", "--only", "lacks"); code == 0 || !strings.Contains(printed, "nothing passed") {
		t.Errorf("a run that shows nothing: exit code %d\n%s", code, printed)
	}
	if code, printed, _ := g.run(t, "STANDIN=", "--only", "right", "--limit", "1"); code != 1 || !strings.Contains(printed, "not run: right:bare: out of time") {
		t.Errorf("a run without time: exit code %d\n%s", code, printed)
	}
}

// The readings are compared with the tool's own, at rest and under load.
func TestGPUCheckReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flaw, outcome, why string }{
		{"", "pass", ""},
		{"lies", "fail", "idle: sm_clock_mhz is 845, nvidia-smi says 345.0 before and 345.0 after it"},
		{"no power", "fail", "power_w is None"},
	} {
		_, printed, results := newGPUCheck(t).run(t, "STANDIN="+c.flaw, "--only", "readings_load")
		r := results["readings_load:live"]
		if r.Outcome != c.outcome || !strings.Contains(strings.Join(r.Why, "; "), c.why) {
			t.Errorf("stand-in %q: %q (%v), want %q (%s)\n%s", c.flaw, r.Outcome, r.Why, c.outcome, c.why, printed)
		}
	}
}

// Every shipped case has a readable head, in which no key is misspelt.
func TestGPUCases(t *testing.T) {
	known := " class code root marker child stdout flags device env args modes needs alone limit attempts timed_out readings "
	files, err := filepath.Glob("gpucases/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a folder of compiled Python
		}
		for line := range strings.Lines(string(text)) {
			rest, head := strings.CutPrefix(strings.TrimPrefix(line, "//"), ":")
			if r, ok := strings.CutPrefix(line, "#:"); ok {
				rest, head = r, true
			}
			if rest = strings.TrimSpace(rest); !head || strings.HasPrefix(rest, "[") {
				continue
			}
			key, _, found := strings.Cut(rest, "=")
			key, _, _ = strings.Cut(strings.TrimSpace(key), ".")
			if !found || !strings.Contains(known, " "+key+" ") {
				t.Errorf("%s: %q is no key", file, rest)
			}
		}
	}
}
