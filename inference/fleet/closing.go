package fleet

import (
	"cmp"
	"math"
	"slices"
)

// completes reports whether a collector has sent all of a window. Each of its runs that sent anything must be complete,
// and the run of the roster, if it is named, must be among them.
func (w *openWindow) completes(name string, boot uint64, reports bool) bool {
	if w == nil {
		return false
	}
	found := false
	for k, d := range w.runs {
		if k.from != name {
			continue
		}
		if !d.complete(reports) {
			return false
		}
		found = found || boot == 0 || k.boot == boot
	}
	return found
}

// expectation is a collector that is waited for.
type expectation struct {
	name     string
	complete bool
	dead     bool // not waited for
	pseudo   bool
}

// expected returns the collectors that have to have a part in the window that ends at end, by name. The argument w is
// that window, nil if none has yet.
func (g *Gate) expected(end int64, w *openWindow) []expectation {
	// Whose name is in several of these is asked of the roster.
	delivered := map[string]bool{} // by name: all that it sent of w is there
	if w != nil {
		for k, d := range w.runs {
			if k.boot == 0 {
				continue
			}
			whole, known := delivered[k.from]
			delivered[k.from] = (whole || !known) && d.complete(g.cfg.Reports)
		}
	}
	var out []expectation
	add := func(name string, complete bool) {
		_, sent := delivered[name]
		c := g.names[name]
		out = append(out, expectation{name: name, complete: complete, dead: c != nil && c.dead && !sent})
	}
	listed := make(map[string]bool, len(g.roster))
	for _, m := range g.roster {
		listed[m.Name] = true
		complete, sent := delivered[m.Name]
		switch {
		case end < m.Since || m.Until != 0 && end > m.Until: // it may have sent something all the same
			if sent {
				add(m.Name, complete)
			}
		case complete && m.Boot != 0 && w.runs[runKey{m.Name, m.Boot}] == nil:
			add(m.Name, false)
		default:
			add(m.Name, complete)
		}
	}
	for name, complete := range delivered {
		if !listed[name] {
			listed[name] = true
			add(name, complete)
		}
	}
	since := end - int64(g.cfg.Patience)*g.cfg.Window
	for name, c := range g.names {
		if !listed[name] && c.heard != 0 && c.heard >= since {
			add(name, false)
		}
	}
	if w != nil && !g.cfg.Reports {
		for i, sent := range w.raw {
			if sent {
				d := w.runs[runKey{PseudoName(i), 0}]
				out = append(out, expectation{name: PseudoName(i), complete: d != nil && d.complete(false), pseudo: true})
			}
		}
	}
	slices.SortFunc(out, func(a, b expectation) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(out, func(a, b expectation) bool { return a.name == b.name })
}

// Due returns the head of the record that closes a window now, if one is to be written. The caller writes it; until it
// is read back, Due returns it again once a window. Call it only when the partition was read to its end, since for a
// gate a record that was not read yet has not come.
func (g *Gate) Due(now int64) (Head, bool) {
	end := int64(0)
	if len(g.open) > 0 {
		end = g.open[0].end
	}
	if g.closed != 0 {
		// A window without records closes also, as long as a collector is expected in it.
		if next := g.closed + g.cfg.Window; end == 0 || next < end {
			if next <= now && slices.ContainsFunc(g.expected(next, nil), func(x expectation) bool { return !x.dead }) {
				end = next
			}
		}
	}
	if end == 0 || now < end {
		return Head{}, false
	}
	if g.asked == end && now >= g.when && now-g.when < g.cfg.Window {
		return Head{}, false
	}
	w := g.find(end)
	patience := int64(g.cfg.Patience) * g.cfg.Window
	h := Head{Kind: Close, From: g.cfg.Name, Slice: uint32(g.cfg.Slice), Start: end - g.cfg.Window, End: end}
	for _, x := range g.expected(end, w) {
		if x.complete {
			continue
		}
		// The limits of a worker of reports itself come later than that.
		if !x.dead && (now-end < patience || x.pseudo && now-end < 2*patience) {
			return Head{}, false
		}
		if len(h.Missing) == MaxMembers {
			continue
		}
		h.Missing = append(h.Missing, x.name)
		if c := g.names[x.name]; x.dead || !x.pseudo && g.cfg.Patience <= 1+missed(c, end-g.cfg.Window) {
			h.Dead = append(h.Dead, x.name)
		}
	}
	if w != nil {
		h.Sources = w.sources(nil)
	}
	g.asked, g.when = end, now
	return h, true
}

// missed is how many windows in a row a collector was missing in, up to the one that ends at end.
func missed(c *collector, end int64) int {
	if c == nil || c.missedAt < end {
		return 0
	}
	return c.missed
}

// sources are the runs that sent something of the window, and those for which there are statements.
func (w *openWindow) sources(of []runKey) []Source {
	out := make([]Source, 0, len(w.runs))
	for k, d := range w.runs {
		out = append(out, Source{k.from, k.boot, d.last})
	}
	for _, k := range of {
		if k != (runKey{}) && w.runs[k] == nil {
			out = append(out, Source{From: k.from, Boot: k.boot})
		}
	}
	slices.SortFunc(out, compareSources)
	return slices.Compact(out)
}

func compareSources(a, b Source) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Boot, b.Boot))
}

// close takes the record that closes a window. The first one counts: all that is before it in the log, and nothing
// behind.
func (g *Gate) close(h *Head, offset int64) (Verdict, error) {
	if err := g.check(h); err != nil {
		return Verdict{Kind: Refused, End: h.End}, err
	}
	if g.closed != 0 && h.End <= g.closed {
		return Verdict{End: h.End}, nil
	}
	w := g.find(h.End)
	base := g.closed
	if base == 0 && len(g.open) > 0 {
		base = g.open[0].end
	}
	if w == nil && base != 0 && h.End > base+int64(g.cfg.Patience+1)*g.cfg.Window {
		return Verdict{Kind: Refused, End: h.End}, errAhead
	}
	v := Verdict{Kind: Closed, End: h.End}
	for len(g.open) > 0 && g.open[0].end < h.End {
		// The writer of this had not read them. They come after it, which makes them late. Reports are counted at once.
		if w := g.open[0]; g.cfg.Reports {
			c := &Closing{Start: w.end - g.cfg.Window, End: w.end, First: w.first()}
			w.close(c, true)
			v.Passed = append(v.Passed, c)
		} else {
			v.Dropped = append(v.Dropped, w.offsets()...)
		}
		g.pass(g.open[0], offset)
		g.heads -= len(g.open[0].entries)
		g.open = g.open[1:]
	}
	c := &Closing{Start: h.End - g.cfg.Window, End: h.End, First: offset}
	past := &pastWindow{end: h.End, closed: offset, first: math.MaxInt64}
	if w != nil {
		g.open = g.open[1:]
		g.heads -= len(w.entries)
		past.first = w.first()
		v.Dropped = append(v.Dropped, w.close(c, g.cfg.Reports)...)
		c.Sources = w.sources(c.statedRuns)
		past.refused = w.refused
		past.keepPseudo(w)
		g.noteHeard(w)
	}
	c.First = min(offset, past.first)

	closed := map[Source]uint64{}
	for _, s := range h.Sources {
		closed[Source{From: s.From, Boot: s.Boot}] = s.Seq
	}
	missing := map[string]bool{}
	for _, name := range h.Missing {
		if name != "" {
			missing[name] = true
		}
	}
	if w != nil {
		for k, d := range w.runs {
			switch complete := d.complete(g.cfg.Reports); {
			case !complete:
				missing[k.from] = true
			case d.last > closed[Source{From: k.from, Boot: k.boot}]:
				if w.completes(k.from, 0, g.cfg.Reports) {
					delete(missing, k.from) // it came while the close was being written
				}
			}
		}
	}
	for name := range missing {
		c.Missing = append(c.Missing, name)
	}
	slices.Sort(c.Missing)
	c.Missing = c.Missing[:min(len(c.Missing), MaxMembers)]
	for _, name := range h.Dead {
		if missing[name] && !w.includes(name) {
			c.Dead = append(c.Dead, name)
		}
	}
	slices.Sort(c.Dead)
	c.Dead = slices.Compact(c.Dead)
	g.miss(c)
	past.missing, past.dead = c.Missing, c.Dead
	g.closed = h.End
	i, ok := g.pastOf(h.End)
	if ok {
		g.past[i] = past
	} else {
		g.past = slices.Insert(g.past, i, past)
	}
	g.forget()
	v.Closing = c
	return v, nil
}

// close lists the records of the window, in their order. It returns the offsets of those that do not count.
func (w *openWindow) close(c *Closing, reports bool) (dropped []int64) {
	slices.SortFunc(w.entries, func(a, b entry) int { return a.compare(&b) })
	for i := range w.entries {
		if e := &w.entries[i]; !c.add(w, e, reports) {
			dropped = append(dropped, e.offset)
		}
	}
	return dropped
}

// includes reports whether anything of a collector is in the window.
func (w *openWindow) includes(name string) bool {
	if w == nil {
		return false
	}
	for k := range w.runs {
		if k.from == name {
			return true
		}
	}
	return false
}

// pass makes an open window one that is closed and is to be made again.
func (g *Gate) pass(w *openWindow, offset int64) {
	p := &pastWindow{
		end: w.end, first: w.first(), closed: offset, revision: uint64(len(w.entries)), pending: len(w.entries) > 0 && !g.cfg.Reports, refused: w.refused,
	}
	p.keepPseudo(w)
	g.noteHeard(w)
	g.stats.Late += uint64(len(w.entries))
	i, _ := g.pastOf(w.end)
	g.past = slices.Insert(g.past, i, p)
}

func (p *pastWindow) keepPseudo(w *openWindow) {
	for i := range w.entries {
		if e := &w.entries[i]; e.boot == 0 && len(p.pseudo) < maxPseudo {
			p.pseudo = append(p.pseudo, pseudo{e.from, e.seq, e.sum})
		}
	}
}

// noteHeard notes which collectors had a part in a window that closes.
func (g *Gate) noteHeard(w *openWindow) {
	for k := range w.runs {
		if c := g.names[k.from]; c != nil && k.boot != 0 {
			c.noteHeard(w.end)
			c.dead = false
			if w.completes(k.from, 0, g.cfg.Reports) {
				c.missed = 0
			}
		}
	}
}

// miss notes which collectors were missing.
func (g *Gate) miss(c *Closing) {
	for _, name := range c.Missing {
		if isPseudo(name) {
			continue
		}
		k := g.collector(name)
		if k == nil {
			continue
		}
		k.missed = missed(k, c.End-g.cfg.Window) + 1
		k.missedAt = c.End
		_, k.dead = slices.BinarySearch(c.Dead, name)
	}
}

// forget drops windows and runs that are too old for corrections.
func (g *Gate) forget() {
	before := g.closed - g.cfg.Corrections
	n := 0
	for n < len(g.past) && g.past[n].end <= before {
		n++
	}
	g.past = slices.Delete(g.past, 0, n)
	for _, c := range g.names {
		for _, r := range c.runs {
			r.gaps = slices.DeleteFunc(r.gaps, func(x gap) bool { return x.end <= before })
		}
	}
	before -= int64(g.cfg.Patience) * g.cfg.Window
	for name, c := range g.names {
		c.runs = slices.DeleteFunc(c.runs, func(r *run) bool { return r.end < before })
		if len(c.runs) == 0 && max(c.heard, c.missedAt) < before {
			delete(g.names, name)
		}
	}
}
