package backend

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/flagos-ai/zlexec/classify"
)

// label is what stands beside an excerpt of the shared corpus.
type label struct {
	Backend    string         `json:"backend"`
	Label      classify.Class `json:"label"`
	Decisive   string         `json:"decisive_line"`
	Difficulty string         `json:"difficulty"`
}

// corpusDir lies beside the repository, not in it.
const corpusDir = "../../../shared/corpus/errors"

// TestCorpus holds the rules against the shared corpus of labelled logs: at least
// 97 % exact, nothing harmless called fatal, nothing fatal missed that can be told.
func TestErrorCorpus(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(corpusDir, "*", "*.json"))
	if len(files) == 0 {
		t.Skipf("no corpus at %s: the shared folder is not beside this checkout", corpusDir)
	}
	sort.Strings(files)
	var table [4][4]int
	exact, total := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var l label
		if err := json.Unmarshal(data, &l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		log, err := os.Open(strings.TrimSuffix(file, ".json") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		res, err := classify.ClassifyReader(classify.Config{Rules: func() ([]classify.Rule, error) { return rulesOf(l.Backend) }}, log)
		log.Close()
		if err != nil {
			t.Fatal(err)
		}
		total++
		table[l.Label][res.Class]++
		if res.Class == l.Label {
			exact++
			continue
		}
		root := classify.Hit{}
		if res.Root != nil {
			root = *res.Root
		}
		t.Logf("%s: %v called %v (%s)\n\tby %s: %.160q\n\tdecisive: %.200q", file[len(corpusDir)+1:], l.Label, res.Class, l.Difficulty, root.Marker, root.Line, l.Decisive)
		if res.Class == classify.Fatal || l.Label == classify.Fatal && l.Difficulty != "undecidable" {
			t.Errorf("%s: fatal is told wrongly", filepath.Base(file))
		}
	}
	t.Logf("%-12s %8s", "label", "called")
	for want := range table {
		t.Logf("%-12v none %3d  recoverable %3d  poisoned %3d  fatal %3d", classify.Class(want), table[want][0], table[want][1], table[want][2], table[want][3])
	}
	t.Logf("exact: %d of %d", exact, total)
	if exact*100 < total*97 {
		t.Errorf("%d of %d exact: less than 97 %%", exact, total)
	}
}
