package steer

import (
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/p4/stamp"
)

// WayLoss counts the outcomes of probes on their way out, by the way of their port.
type WayLoss struct {
	stamp.Way
	Sent, Lost uint64
}

// LossyLink is a link that explains losses.
type LossyLink struct {
	Link       stamp.Link
	Ratio      float64      // of the packets that cross it
	Confidence float64      // that it is this one
	Sent, Lost uint64       // probes that crossed it
	Rivals     []stamp.Link // that explain the losses at least a third as well
}

const (
	// wayFloor is the share of probes whose loss is no news.
	wayFloor = 1e-6
	// wayAlarm is the chance of a link that is named where none is lossy.
	wayAlarm = 1e-2
	// wayLeast are the losses that are worth a link: each is on another one of its ways, as a rule.
	wayLeast = 2
	// leastRival is the likelihood of a rival by that of the link.
	leastRival = 1. / 3
)

// LossyLinks returns few links that explain the losses on ways (package loss). It needs no reports of switches. A link
// is named because ways that cross it lose packets, and ways that cross only its neighbours do not. So it takes ways
// that distinguish links ([stamp.Choose]), and better many with few probes than few with many.
func LossyLinks(list []WayLoss, answers stamp.AnswersBy) (lossy []LossyLink) {
	ways := make([]stamp.Way, len(list))
	for i := range list {
		ways[i] = list[i].Way
	}
	links, of, _ := stamp.Links(ways, answers)
	samples := make([]loss.Sample, len(list))
	for i := range list {
		samples[i] = loss.Sample{Links: of[i], Packets: list[i].Sent, Lost: list[i].Lost}
	}
	for _, c := range loss.FitFew(samples, len(links), wayFloor, wayAlarm, wayLeast) {
		if c.Link < 0 {
			continue // of one port alone, and not of a link
		}
		x := LossyLink{Link: links[c.Link], Ratio: c.Ratio, Confidence: c.Confidence, Sent: c.Packets, Lost: c.Lost}
		for _, r := range c.Rivals {
			if r.Link >= 0 && r.Weight >= leastRival {
				x.Rivals = append(x.Rivals, links[r.Link])
			}
		}
		lossy = append(lossy, x)
	}
	return lossy
}
