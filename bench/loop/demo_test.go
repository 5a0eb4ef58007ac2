package loop

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The picture of the demonstration is the one that the command draws for what it measured, and the same each time.
func TestDemoPicture(t *testing.T) {
	o := DefaultOptions()
	o.Demo, o.Picture = time.Minute, filepath.Join(t.TempDir(), "demo.svg")
	var text bytes.Buffer
	for _, s := range Sections {
		if s.Name == "demo" {
			if err := s.Run(t.Context(), &text, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	drawn, err := os.ReadFile(o.Picture)
	if err != nil {
		t.Fatal(err)
	}
	d, err := runDemo(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var second, said bytes.Buffer
	if err := d.picture(&second); err != nil {
		t.Fatal(err)
	}
	if err := d.Print(&said); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, second.Bytes()) || text.String() != said.String() {
		t.Errorf("it differs from one run to the next:\n%s%s", &text, &said)
	}
	// In the first minute a line is congested from second 20 on, and another one goes down at second 46.
	for _, want := range []string{"agg-0-0:3--core-0:1", "edge-1-0:3--agg-1-0:1"} {
		found := false
		for _, s := range d.Suspected {
			found = found || s.Link == want
		}
		if !found {
			t.Errorf("%s was never suspected: %+v", want, d.Suspected)
		}
	}
}

// The picture of the page is that of an hour.
func TestDemoPictureOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/loop-demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !testkit.Night() { // which takes more than a minute of processor time
		if !strings.Contains(string(page), ">60</text>") {
			t.Error("it does not reach minute 60")
		}
		return
	}
	d, err := runDemo(t.Context(), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.picture(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, b.Bytes()) {
		t.Error("docs/loop-demo.svg is another one; write it with: hopscope-bench loop demo --svg docs/loop-demo.svg")
	}
}
