package cause

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPageHasTheTable: the page shows the table of symptoms as it is.
func TestPageHasTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range faults {
		f := &faults[i]
		var places [NumWheres][]string
		for _, s := range f.symptoms {
			places[s.Where] = append(places[s.Where], fmt.Sprintf("%s %d of %d", s.sign, s.shown, s.of))
		}
		var all []string
		for w, list := range places {
			if len(list) > 0 {
				all = append(all, where(w).String()+": "+strings.Join(list, ", "))
			}
		}
		if row := fmt.Sprintf("| %s | %s | %d | %s |\n", f.Name, f.on, f.happened, strings.Join(all, "; ")); !strings.Contains(string(page), row) {
			t.Errorf("docs/findings.md lacks the line\n%s", row)
		}
	}
	if text := fmt.Sprintf("%.2g", leak); !strings.Contains(string(page), text) {
		t.Errorf("docs/findings.md lacks the leak %s", text)
	}
}

// TestCommentHasTheDelays holds that the package comment has the shares of findings that begin later than others of their fault.
func TestCommentHasTheDelays(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	comment := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\n//", " ")), " ")
	for _, l := range append(later[:len(later):len(later)], behindLater) {
		if text := fmt.Sprintf("%d of %d", l.Right, l.Of); !strings.Contains(comment, text) {
			t.Errorf("doc.go lacks %s", text)
		}
	}
}
