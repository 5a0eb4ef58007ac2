package events

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// PathConfig are the settings of the detector of path changes.
type PathConfig struct {
	PathGroup  int `yaml:"path_group" doc:"Flows that leave the same hop in one window and share one finding." range:"2..1000000"`
	PathStable int `yaml:"path_stable" doc:"Windows without a change that end the finding of a flow's path." range:"1..1000"`
	PathFlaps  int `yaml:"path_flaps" doc:"Changes during one finding that make it a warning." range:"2..1000000"`
}

var defaultPathConfig = PathConfig{PathGroup: 5, PathStable: 3, PathFlaps: 4}

// paths finds flows that take another path than before. Flows that leave the same hop in one window share a finding, and
// so do all flows for which there is no place.
type paths struct {
	groups groups
	flows  *lifecycle[decode.FlowKey, tally]
	others *lifecycle[all, tally]
}

// all is the key of what is followed as one.
type all struct{}

func newPaths(j *journal) paths {
	return paths{
		groups: newGroups(j),
		flows:  follow(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*coder).flow, (*coder).tally),
		others: follow(j, func(all, all) int { return 0 }, func(*coder, *all) {}, (*coder).tally),
	}
}

func (p paths) step(w *inference.Window) {
	others := w.OtherPaths
	changes := p.groups.take(w.Paths)
	for i := range changes {
		c := &changes[i]
		t := p.flows.see(c.Flow, p.flows.cfg.MaxFlows)
		if t == nil {
			others++
			continue
		}
		t.count++
		text := fmt.Sprintf("%s left %s for %s after %d packets", c.Flow, inference.HopPath(c.From), inference.HopPath(c.To), c.Packets)
		if t.count > 1 {
			text += fmt.Sprintf(", change %d", t.count)
		}
		tellPath(p.flows, t, c.Flow, text)
	}
	if others > 0 {
		t := p.others.see(all{}, 1)
		t.count += others
		tellPath(p.others, t, decode.FlowKey{}, fmt.Sprintf("%d changes of path in flows that are not listed one by one", t.count))
	}

	endPaths(p.others, func(_ all, n uint64) string {
		return fmt.Sprintf("no more changes of path after %d in flows that are not listed one by one", n)
	})
	endPaths(p.groups.lifecycle, func(h inference.HopKey, n uint64) string {
		return fmt.Sprintf("no further flow left %s, after %s", h.Place(), plural(n, "flow"))
	})
	endPaths(p.flows, func(f decode.FlowKey, n uint64) string {
		return fmt.Sprintf("path of %s is stable after %s", f, plural(n, "change"))
	})
}

// tellPath tells how the path of a flow stands, or those of all flows without a place.
func tellPath[K comparable](l *lifecycle[K, tally], t *tally, flow decode.FlowKey, text string) {
	severity := inference.Info
	if t.count >= uint64(l.cfg.PathFlaps) {
		severity = inference.Warning
	}
	l.tell(&t.finding, inference.Finding{Kind: inference.PathChanged, Severity: severity, Flow: flow, Value: float64(t.count), Text: text})
}

// endPaths ends what did not change for some time.
func endPaths[K comparable](l *lifecycle[K, tally], text func(key K, changes uint64) string) {
	l.absent(func(k K, t *tally, windows int) bool {
		if windows < l.cfg.PathStable {
			return false
		}
		l.end(&t.finding, text(k, t.count))
		return true
	})
}
