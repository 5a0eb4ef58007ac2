package web

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	answers "github.com/hopscope/hopscope/sink/web/ask"
)

// TestOpenFindingsOfPage: what the page answers has all of a finding that the control of probes judges by.
func TestOpenFindingsOfPage(t *testing.T) {
	flow, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:5001 tcp")
	if err != nil {
		t.Fatal(err)
	}
	list := []inference.Finding{
		{ID: 1, Kind: inference.BlackHole, Severity: inference.Critical, Start: 5e9, Flow: flow, Element: inference.ElementOfFlow(flow), Text: "gone",
			Path: []inference.HopKey{{Node: 13, EgressIf: 1}, {Node: 6}, {Node: 14, EgressIf: 2}}, Learning: true, Resting: true, Value: 1},
		{ID: 2, Kind: inference.PathChanged, Severity: inference.Warning, Start: 6e9, Node: 7, Element: inference.ElementOfLink(7, 9), Text: "many left",
			Value: 9, Evidence: 3, Cause: 1},
	}
	data, err := json.Marshal(answers.NewFindings(list, nil))
	if err != nil {
		t.Fatal(err)
	}
	var answer []answers.Finding
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	if got := answers.OpenFindings(answer); !reflect.DeepEqual(got, list) {
		t.Errorf("%s\nread as %+v\nwant %+v", data, got, list)
	}
}
