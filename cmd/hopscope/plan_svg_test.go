package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/show"
)

// Pictures of large plans are no taller than three screens, say what they show, and are the same each time.
func TestPlanPictures(t *testing.T) {
	dir := t.TempDir()
	picture := filepath.Join(dir, "plan.svg")
	const zoo = "../../planner/topo/load/testdata/"
	for _, args := range []string{
		"orchestrate --topology fat-tree:10 --objective balance --time-limit 200ms",
		"cover --topology fat-tree:30",
		"cover --topology leaf-spine:64,128",
		"cover --directed --topology " + zoo + "Interoute.gml",
		"cover --topology " + zoo + "Bren.gml --depots GEANT",
		"queries ../../docs/examples/queries.yaml --topology fat-tree:4",
		"schedule --instance ../../docs/examples/schedule.json",
		"attention --instance ../../docs/examples/cycle.json",
		"delivery --topology " + zoo + "Bren.gml --seed 7",
	} {
		var text [2]string
		for k := range text {
			if _, err := runPlan(t, append(strings.Fields(args), "--svg", picture)...); err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			b, err := os.ReadFile(picture)
			if err != nil {
				t.Fatal(err)
			}
			text[k] = string(b)
		}
		if text[0] != text[1] && !strings.Contains(args, "--time-limit") {
			t.Errorf("%s: two pictures differ", args)
		}
		var svg struct {
			Height float64 `xml:"height,attr"`
			Role   string  `xml:"role,attr"`
			Title  string  `xml:"title"`
			Desc   string  `xml:"desc"`
		}
		if err := xml.Unmarshal([]byte(text[0]), &svg); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if svg.Height > show.MaxHeight || svg.Height < 200 || svg.Role != "img" || svg.Title == "" || svg.Desc == "" {
			t.Errorf("%s: %+v", args, svg)
		}
	}
}
