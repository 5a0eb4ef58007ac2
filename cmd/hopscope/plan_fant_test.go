package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/decode/demux"
)

// The example of FANT's metrics gives the bitmaps of FANT, by its algorithm and by ours, with the widths of the decoded
// dialect.
func TestFANTMetrics(t *testing.T) {
	out, err := runPlan(t, "attention", "--metrics", "../../docs/examples/fant-metrics.yaml", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Instructions struct {
			Basic, Detailed string
			BasicBytes      int `json:"basic_bytes"`
			DetailedBytes   int `json:"detailed_bytes"`
		}
		Published any // where the article's algorithm makes others basic
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	i := got.Instructions
	if got.Published != nil || i.Basic != "0xF161" || i.Detailed != "0xFFFF" || i.BasicBytes != 28+4 || i.DetailedBytes != 84+4 {
		t.Errorf("%+v", i)
	}
	profile, ok := demux.Lookup("fant")
	if !ok {
		t.Fatal("no profile fant")
	}
	for text, bytes := range map[string]int{i.Basic: i.BasicBytes, i.Detailed: i.DetailedBytes} {
		var bitmap uint16
		if _, err := fmt.Sscanf(text, "0x%X", &bitmap); err != nil {
			t.Fatal(err)
		}
		if _, perHop, err := profile.INT.StackBytes(bitmap); err != nil || perHop != bytes {
			t.Errorf("%s: %d bytes in the metrics, %d in the dialect, %v", text, bytes, perHop, err)
		}
	}
}
