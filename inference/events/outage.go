package events

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

const (
	// fewTogether is how many exporters have to fall silent in one moment to have a cause in common, at least half of
	// those that reported.
	fewTogether = 3
	// togetherError is the probability of the pause of each of them. Two that have nothing to do with each other make
	// such pauses as seldom as one makes one of silenceError.
	togetherError = 1e-3
)

// outage is the silence of at least half of the exporters, all of which fell silent in one moment.
type outage struct {
	finding *inference.Finding
	windows int // since it began
	members int // that fell silent
	others  int // that did not
}

// outages is the table of outages, which has one line at most. The state has none before version 5.
type outages struct {
	*subject.Table[subject.All, outage]
}

func newOutages(j *subject.Journal) outages {
	x := outages{subject.NewTable(j, func(subject.All, subject.All) int { return 0 }, func(*subject.Coder, *subject.All) {}, func(c *subject.Coder, o *outage) {
		c.Finding(&o.finding)
		c.Check("finding of an outage", o.finding != nil)
		subject.Number(c, &o.windows)
		subject.Number(c, &o.members)
		subject.Number(c, &o.others)
	})}
	j.States[len(j.States)-1] = x
	return x
}

func (x outages) Code(c *subject.Coder) {
	if c.Version >= 5 {
		x.Table.Code(c)
	}
}

func (x outages) clear() {
	clear(x.Index)
	x.List = x.List[:0]
}

// covers reports whether an exporter that is silent for a number of windows fell silent with the outage.
func (x outages) covers(quiet int) bool {
	s := x.Index[subject.All{}]
	return s != nil && quiet >= s.State.windows-1 && quiet <= s.State.windows+1
}

// seeExporter is given an exporter with the windows for which it has been silent, the present one included.
type seeExporter = func(k inference.ExporterKey, quiet int, e *exporter)

// outage finds exporters that fell silent at the same moment, before each of them is judged by itself.
func (x exporters) outage(w *inference.Window) {
	quiet := 0
	for _, s := range x.List {
		if s.State.quiet+1 >= x.Cfg.SilenceAfter {
			quiet++
		}
	}
	if quiet < fewTogether && len(x.outages.List) == 0 {
		return
	}
	talking, silent := 0, map[int]int{} // exporters by the windows for which they have been silent
	reported := map[inference.ExporterKey]bool{}
	for i := range w.Exporters {
		if s := &w.Exporters[i]; s.Reports+s.Malformed > 0 {
			reported[s.ExporterKey] = true
		}
	}
	each := func(see seeExporter) {
		for _, s := range x.List { // those that the tracker of exporters has forgotten are silent, too
			switch {
			case x.unheard[s.Key] || s.State.windows < float64(x.Cfg.SilenceHistory):
			case reported[s.Key]:
				see(s.Key, 0, &s.State)
			default:
				see(s.Key, s.State.quiet+1, &s.State)
			}
		}
	}
	each(func(_ inference.ExporterKey, quiet int, _ *exporter) {
		if quiet == 0 {
			talking++
		} else {
			silent[quiet]++
		}
	})
	if open := x.outages.Index[subject.All{}]; open != nil {
		open.State.windows++
		o := x.outages.Observe(subject.All{}, 1)
		n := silent[o.windows-1] + silent[o.windows] + silent[o.windows+1]
		if 2*n >= o.members {
			o.members = max(n, o.members)
			x.publishOutage(o, w, n, talking, each)
			return
		}
		x.End(&o.finding, fmt.Sprintf("%d of %s report again after %s", o.members-n, subject.Plural(uint64(o.members), "silent exporter"), subject.Plural(uint64(o.windows-1), "silent window")))
		x.outages.clear()
		return
	}
	for quiet := x.Cfg.SilenceAfter; quiet <= x.Cfg.SilenceAfter+2; quiet++ {
		n := silent[quiet] + silent[quiet+1]
		after := 0 // others that were not silent before them
		for q, k := range silent {
			if q < quiet {
				after += k
			}
		}
		if silent[quiet] == 0 || n < fewTogether || 2*n < n+talking+after {
			continue
		}
		unlikely := 0
		each(func(_ inference.ExporterKey, q int, e *exporter) {
			if (q == quiet || q == quiet+1) && e.silence == nil && q >= e.pauses.limit(togetherError) {
				unlikely++
			}
		})
		if unlikely >= fewTogether && 2*unlikely >= n+talking+after {
			o := x.outages.Observe(subject.All{}, 1)
			o.windows, o.members, o.others = quiet, n, talking+after
			x.publishOutage(o, w, n, talking, each)
			return
		}
	}
}

// publishOutage publishes the finding of an outage; n of its members are silent.
func (x exporters) publishOutage(o *outage, w *inference.Window, n, talking int, each func(seeExporter)) {
	length := max(w.End-w.Start, 0)
	f := inference.Finding{Kind: inference.ExporterSilence, Severity: inference.Warning, Element: inference.ElementOfCollector(), Value: float64(o.windows)}
	since := clock(x.Now - int64(o.windows)*length)
	if talking == 0 && w.Reports == 0 {
		f.Severity = inference.Critical
		f.Text = fmt.Sprintf("no datagrams at all since %s, from any of %d exporters (socket, interface, firewall, sender)", since, n)
	} else {
		if o.windows >= x.Cfg.SilentSevere {
			f.Severity = inference.Critical
		}
		f.Text = fmt.Sprintf("%d of %d exporters fell silent together at %s", n, n+o.others, since)
		if p := x.apart(o, each); p.IsValid() {
			f.Text += fmt.Sprintf(", all those of %s", p)
		}
		f.Text += ": the network, the site or the socket that they have in common"
	}
	x.Publish(&o.finding, f)
}

// apart returns the longest prefix that the members of an outage have in common, if it has no other exporter.
func (x exporters) apart(o *outage, each func(seeExporter)) (p netip.Prefix) {
	first := true
	each(func(k inference.ExporterKey, quiet int, _ *exporter) {
		a := k.Addr.Netip()
		switch {
		case !x.outages.covers(quiet):
		case first:
			p, first = netip.PrefixFrom(a, a.BitLen()), false
		default:
			for p.IsValid() && !p.Contains(a) && p.Bits() > 0 && p.Addr().BitLen() == a.BitLen() {
				p = netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
			}
		}
	})
	each(func(k inference.ExporterKey, quiet int, _ *exporter) {
		if quiet == 0 && p.Contains(k.Addr.Netip()) {
			p = netip.Prefix{}
		}
	})
	if p.Bits() <= 0 {
		return netip.Prefix{}
	}
	return p
}

// allSilent reports whether none of several exporters sent anything, so that it is unknown what is silent behind them.
func allSilent(w *inference.Window) bool {
	return w.Reports == 0 && len(w.Exporters) >= fewTogether &&
		!slices.ContainsFunc(w.Exporters, func(s inference.ExporterStats) bool { return s.Reports+s.Malformed > 0 })
}
