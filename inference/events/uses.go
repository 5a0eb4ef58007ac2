package events

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// uses finds hops that no packets pass any more. The times at which packets pass a hop are remembered for longer than
// its statistics. So nights and weekends remain known for a hop whose history is forgotten meanwhile.
type uses struct {
	*subject.Table[inference.HopKey, use]
}

// use is when packets pass a hop.
type use struct {
	detect.Use
	finding *inference.Finding
}

// usesKept is the time without packets after which the pauses of a hop are forgotten.
const usesKept = 15 * 24 * time.Hour

func newUses(j *subject.Journal) uses {
	return uses{subject.NewTable(j, inference.HopKey.Compare, (*subject.Coder).Hop, codeUse)}
}

func codeUse(c *subject.Coder, u *use) {
	c.Part("use", u.Code)
	c.Finding(&u.finding)
}

// step takes a window, in which it can be unknown whether hops without packets are silent.
func (x uses) step(w *inference.Window, cfg *detect.Config, unknown bool) {
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.Other || s.Count == 0 {
			continue
		}
		u := x.Observe(s.HopKey, x.Cfg.MaxHops)
		switch {
		case u == nil:
		case u.Add(cfg, w.End, s.Count) == detect.Ended:
			x.End(&u.finding, s.HopKey.Place()+" reports again")
		case u.finding != nil:
			u.finding.Updated = x.Now
		}
	}
	x.ForEachAbsent(func(k inference.HopKey, u *use, windows int) bool {
		if windows >= x.Cfg.ForgetAfter && (!u.Known(cfg) || time.Duration(windows)*cfg.Window >= usesKept) {
			x.End(&u.finding, k.Place()+" is forgotten")
			return true
		}
		if unknown { // its silence is unknown
			return false
		}
		switch u.Add(cfg, w.End, 0) {
		case detect.Begun:
			f := inference.Finding{
				Kind: inference.HopSilence, Severity: inference.Warning, Node: k.Node, EgressIf: k.EgressIf, Element: inference.ElementOfHop(k),
				Learning: u.Learning(), Text: fmt.Sprintf("%s has no packets; at this time of the week, nearly every window had some", k.Place()),
			}
			if share := u.Share(); share < .9 {
				f.Text = fmt.Sprintf("%s has no packets for longer than before; %s of the windows had some", k.Place(), inference.Percent(share, 2))
			}
			if f.Learning {
				f.Text += learningText
			}
			x.Publish(&u.finding, f)
		case detect.Ended:
			x.End(&u.finding, k.Place()+" is still silent, which is the usual state now")
		default:
			if u.finding != nil {
				u.finding.Updated = x.Now
			}
		}
		return false
	})
}

// inherit takes over what versions before 6 knew of the pauses of hops, and the findings that it left open.
func (x uses) inherit(hops *subject.Table[inference.HopKey, hop]) {
	for _, s := range hops.List {
		h := &s.State
		for i := range h.series {
			if h.series[i].used {
				u := &subject.Entry[inference.HopKey, use]{Key: s.Key, Last: s.Last, State: use{h.series[i].Use(), h.silence}}
				if !u.State.Open() {
					u.State.finding = nil
				} else {
					h.silence = nil
				}
				x.Add(u)
				break
			}
		}
	}
}
