package cause

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPageHasTheCauses holds that the page names each cause.
func TestPageHasTheCauses(t *testing.T) {
	page, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Causes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i := range faults {
		if name := faults[i].Name; !strings.Contains(section, name) {
			t.Errorf("docs/findings.md does not name the cause %q", name)
		}
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
