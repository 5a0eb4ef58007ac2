package steer

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/p4/agent"
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

// Losses are the output of "hopscope agent ways --lossy".
type Losses struct {
	Seconds float64          `json:"seconds"`
	Ways    int              `json:"ways"`
	Sent    uint64           `json:"sent"`
	Lost    uint64           `json:"lost"`            // on their way out, with
	Assumed uint64           `json:"lost_assumed"`    // those of sessions without answers, which may be answers
	Home    uint64           `json:"lost_home"`       // answers, which explain no link: their way is not traced
	Unknown uint64           `json:"lost_either_way"` // that explain no link, since it is not known which way
	Links   []lossyLinkWords `json:"links"`
}

type lossyLinkWords struct {
	Link       string   `json:"link"`
	Ratio      float64  `json:"loss_ratio"`
	Confidence float64  `json:"confidence"`
	Sent       uint64   `json:"sent"`
	Lost       uint64   `json:"lost"`
	Rivals     []string `json:"not_told_from,omitempty"`
}

// NewLosses names the links that explain what was lost between two questions. A session that is another one, or on another way, is left out.
func NewLosses(before, after []agent.WayCount, by stamp.AnswersBy, took time.Duration) *Losses {
	type session struct {
		from, to netip.Addr
		port     uint16
		epoch    uint32
	}
	of := func(w *agent.WayCount) session { return session{w.From, w.To, w.Port, w.Epoch} }
	first := map[session]agent.WayCount{}
	for _, w := range before {
		first[of(&w)] = w
	}
	x := &Losses{Seconds: took.Seconds(), Links: []lossyLinkWords{}}
	var list []WayLoss
	for _, w := range after {
		was, ok := first[of(&w)]
		if !ok || w.Sent < was.Sent {
			continue
		}
		lost := w.Lost - min(was.Lost, w.Lost)
		out := min(w.Out-min(was.Out, w.Out), lost) // numbers may say now where others were lost before
		home := min(w.Home-min(was.Home, w.Home), lost-out)
		unknown := lost - out - home
		x.Home += home
		if w.Silent {
			x.Assumed += unknown
			out += unknown
		} else {
			x.Unknown += unknown
		}
		n := WayLoss{Way: w.Way, Sent: w.Sent - was.Sent}
		n.Lost = min(out, n.Sent)
		list = append(list, n)
		x.Ways, x.Sent, x.Lost = x.Ways+1, x.Sent+n.Sent, x.Lost+n.Lost
	}
	words := func(l stamp.Link) string {
		if !l.From.IsValid() {
			return "to " + l.To.String()
		}
		return l.From.String() + " > " + l.To.String()
	}
	for _, l := range LossyLinks(list, by) {
		y := lossyLinkWords{Link: words(l.Link), Ratio: l.Ratio, Confidence: l.Confidence, Sent: l.Sent, Lost: l.Lost}
		for _, r := range l.Rivals {
			y.Rivals = append(y.Rivals, words(r))
		}
		x.Links = append(x.Links, y)
	}
	return x
}

// Write writes the links as text.
func (x *Losses) Write(w io.Writer) error {
	fmt.Fprintf(w, "in %.0f s %d of %d requests were lost on their way out, over %d ways\n", x.Seconds, x.Lost, x.Sent, x.Ways)
	if x.Assumed > 0 {
		fmt.Fprintf(w, "%d of them are of sessions without answers: they may be answers that were lost on their way home, which is not traced\n", x.Assumed)
	}
	if x.Home > 0 {
		fmt.Fprintf(w, "%d answers were lost on their way home, which is not traced: no link explains them\n", x.Home)
	}
	if x.Unknown > 0 {
		fmt.Fprintf(w, "%d more were lost on either way, and explain no link: reflectors that number no answers (stamp.stateless) do not say where, others later\n", x.Unknown)
	}
	if len(x.Links) == 0 {
		_, err := fmt.Fprintln(w, "no link explains what was lost on the way out")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "link\tlost\tof\tshare\tconfidence\tnot told from")
	for _, l := range x.Links {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%.2f\t%s\n", l.Link, l.Lost, l.Sent, inference.Percent(l.Ratio, 2), l.Confidence, strings.Join(l.Rivals, ", "))
	}
	return t.Flush()
}
