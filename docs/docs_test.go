package docs

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestKind holds that each kind has what an operator is shown of it, without marks of the page's lines.
func TestKind(t *testing.T) {
	for _, k := range inference.Kinds() {
		var titles []string
		for _, p := range Kind(k.String()) {
			titles = append(titles, p.Title)
			if p.Text == "" || strings.Contains(p.Text, "\n") || strings.HasPrefix(p.Text, "*") {
				t.Errorf("%v: passage %q is %q", k, p.Title, p.Text)
			}
		}
		if got := strings.ReplaceAll(strings.Join(titles, ","), ",Element", ""); got != ",Evidence,What to do,Thresholds" {
			t.Errorf("%v: passages %q", k, titles)
		}
	}
	if got := Kind("microburst"); got != nil {
		t.Errorf("an unknown kind: %q", got)
	}
}

// Of links, those to sections of pages that the program holds stay.
func TestInlineHTML(t *testing.T) {
	const line = "a <b> `x|y` [c](findings.md#causes), [d](agent.md), *e* \\| **f**"
	if got, want := inlineHTML(line), `a &lt;b&gt; <code>x|y</code> <a href="findings#causes">c</a>, d, <em>e</em> \| <strong>f</strong>`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
