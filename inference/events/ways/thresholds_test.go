package ways

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// testFlow is the nth flow to one host.
func testFlow(n uint32) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n)), Dst: decode.AddrFrom4([]byte{10, 9, 9, 9}),
		SrcPort: 1000, DstPort: 80, Proto: 6, IPVersion: 4,
	}
}

// A flow of which no packets are compared is forgotten in the window of the limit, and not one earlier.
func TestForgetThreshold(t *testing.T) {
	j := &subject.Journal{Cfg: subject.DefaultConfig()}
	x := NewSilent(j)
	step := func(w *inference.Window) {
		j.Begin(w.End)
		x.Step(w)
		j.Finish()
	}
	step(&inference.Window{End: 1, Losses: []inference.FlowLoss{{Flow: testFlow(1), Packets: 9, Path: []inference.HopKey{{Node: 1}, {Node: 3}}}}})
	if n := len(x.flows.List); n != 1 {
		t.Errorf("%d are known, want 1", n)
	}
	for n := 1; n <= silentForget+2; n++ {
		step(&inference.Window{End: int64(n + 1)})
		if got, want := len(x.flows.List), map[bool]int{true: 1}[n < silentForget+1]; got != want {
			t.Errorf("%d are known after %d windows, want %d", got, n, want)
		}
	}
}

// A loss is critical from silentSevere on, and a link is named without doubt from silentSure on.
func TestSilentThresholds(t *testing.T) {
	for _, x := range []struct {
		ratio, confidence float64
		severity          inference.Severity
		doubt             bool
	}{
		{.0499, .96, inference.Warning, false}, {.05, .96, inference.Critical, false}, {.0501, .96, inference.Critical, false},
		{.01, .949, inference.Warning, true}, {.01, .95, inference.Warning, false}, {.01, .951, inference.Warning, false},
	} {
		j := &subject.Journal{Cfg: subject.DefaultConfig()}
		s := NewSilent(j)
		s.links.list = []link{{from: inference.HopKey{Node: 1}, to: inference.HopKey{Node: 3}}}
		s.sampleFlows, s.keys = []*silentFlow{{}}, []decode.FlowKey{testFlow(1)}
		s.samples = []loss.Sample{{Links: []int32{0}, Packets: 1000, Lost: 10}}
		j.Begin(1)
		s.found(loss.Culprit{Link: 0, Flow: -1, Ratio: x.ratio, Confidence: x.confidence, Packets: 1000, Lost: 10}, nil, nil, 0, true)
		f := j.Published
		if len(f) != 1 || f[0].Severity != x.severity || strings.Contains(f[0].Text, "nearly as well") != x.doubt {
			t.Errorf("ratio %v, confidence %v: %+v", x.ratio, x.confidence, f)
		}
	}
}

// A loss that is new is explained by culprits that are known if three of four lost packets passed them, and not by fewer.
func TestExplainedThreshold(t *testing.T) {
	theirs, other := []inference.HopKey{{Node: 1}, {Node: 3}}, []inference.HopKey{{Node: 2}, {Node: 4}}
	for n, want := range map[uint64]bool{74: false, 75: true, 76: true} {
		s := NewSilent(&subject.Journal{Cfg: subject.DefaultConfig()})
		s.culprits.Observe(culprit{from: 1, to: 3}, 10)
		s.keys = []decode.FlowKey{testFlow(1), testFlow(2)}
		s.sampleFlows = []*silentFlow{{path: theirs}, {path: other}}
		s.samples = []loss.Sample{{Links: []int32{5}, Packets: 1000, Lost: n}, {Links: []int32{5}, Packets: 1000, Lost: 100 - n}}
		if got := s.explainedByCulprits(5); got != want {
			t.Errorf("%d of 100: %v, want %v", n, got, want)
		}
	}
}
