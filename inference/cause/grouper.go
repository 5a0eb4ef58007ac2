package cause

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Bounds of a [Grouper].
const (
	maxAlone    = 16384 // findings without a cause that are remembered
	maxCauses   = 1024  // open causes
	maxEvidence = 4096  // open findings of one cause
	maxFlows    = 64    // flows of one cause by which others join it
	maxShown    = 512   // elements of one cause whose signs are remembered
	maxHops     = 64    // hops of one cause by which others join it
)

// Grouper puts findings together. It has one owner. The zero value has seen nothing.
type Grouper struct {
	Windows uint64   // that it has seen
	Last    uint64   // greatest id of a finding that it has seen
	Alone   []*Alone // findings without a cause, by id
	Causes  []*Cause // open ones, by id

	around around // of the present window
	scene  *Scene
	claims map[*Alone]inference.Element // of findings that several elements together explain best
}

// Alone is a finding without a cause.
type Alone struct {
	Finding inference.Finding
	Born    uint64 // window in which it was found, or in which its condition began if the finding states that
	Late    uint64 // windows before that in which its condition may have begun
	Quiet   int    // windows since it ended
	Moved   []inference.HopKey

	// In the present window:
	fits        []Fit
	alone       float64  // what it costs
	unexplained bool     // it rests on digests that fit no path
	past        bool     // it has ended, and explains only what began with it
	behind      []uint64 // causes whose packets pass its place after theirs
	publishedAt int      // index in Window.Published, -1 for none
	taken       bool
}

// Cause is an open cause.
type Cause struct {
	Finding *inference.Finding
	Fits    []Fit // elements that explain all evidence, with the sum of misfits
	Last    uint64
	Quiet   int // windows since the last of its evidence ended
	Born    uint64
	Open    []uint64 // ids of evidence that has not ended, in order
	Kinds   []Tally  // by kind
	Flows   []decode.FlowKey
	Moved   []inference.HopKey // hops that flows of its evidence moved to
	Shown   []Showing          // by its evidence, also where that has ended

	// In the present window:
	news       bool
	openBefore bool
	previous   inference.Finding // finding as it was before this window
}

// Showing is an element with the signs that it shows, or showed.
type Showing struct {
	Element inference.Element
	Signs   Signs
}

// Tally counts the evidence of one kind and remembers the strongest of it.
type Tally struct {
	Kind     inference.Kind
	Count    int
	Severity inference.Severity
	Lead     inference.Finding // of the highest severity, and of those the first
}

// Window is the input of a Grouper for one window.
type Window struct {
	Now       int64               // end of the window, ns since 1970
	Length    int64               // of the window, ns
	Settle    int                 // windows until what has ended is taken to be over
	Published []inference.Finding // by detectors in this window; Step sets their Cause
	Map       Map

	// Seen returns the signs that an element could show in the window, as in [Scene]; nil where nothing does.
	Seen func(inference.Element) Signs
	// Late returns how many windows before it was found the condition of a finding may have begun. It is nil where
	// findings begin when they are found.
	Late func(id uint64) uint64
	// Moved returns the hops that the flows of a finding moved to, or those on their way that it comes from.
	Moved func(id uint64) []inference.HopKey
	// Open returns a finding that has not ended as its detector keeps it, so that its cause can be noted there.
	Open func(id uint64) *inference.Finding
	// Start keeps a new cause and gives it an id.
	Start func(f inference.Finding) *inference.Finding
	// Publish publishes a finding in this window.
	Publish func(f inference.Finding)
	// Offered is given the elements that are thought of for a finding, as in [Scene]; nil where nothing counts them.
	Offered func(f *inference.Finding, o Offer)
}

// Step assigns the findings of a window to causes. It publishes causes that began, became more severe, have another
// element or ended, and findings that got a cause after they were published.
func (g *Grouper) Step(w *Window) {
	g.Windows++
	for _, c := range g.Causes {
		c.news, c.openBefore, c.previous = false, true, *c.Finding
	}
	fresh := g.observe(w)
	g.scene = nil
	if len(fresh) > 0 || slices.ContainsFunc(g.Alone, func(a *Alone) bool { return g.Windows <= a.Born+mostPatience }) {
		g.place(w, fresh)
	}
	g.end(w)
}

// observe updates what is known of open findings and returns the new ones, by id.
func (g *Grouper) observe(w *Window) (fresh []*Alone) {
	for _, a := range g.Alone {
		a.publishedAt, a.past = -1, a.Quiet > w.Settle
		if a.Finding.Kind == inference.StrangeDigests {
			if more := w.Moved(a.Finding.ID); len(more) > 0 && len(more) < len(a.Moved) { // digests locate it better by now
				a.Moved = addHops(nil, more)
			}
		}
	}
	if len(w.Published) == 0 {
		return nil
	}
	alone := make(map[uint64]*Alone, len(w.Published))
	byID := make(map[uint64]*Cause, len(g.Causes))
	last := g.Last
	for i := range w.Published {
		alone[w.Published[i].ID] = nil
		g.Last = max(g.Last, w.Published[i].ID)
	}
	for _, a := range g.Alone {
		if _, now := alone[a.Finding.ID]; now {
			alone[a.Finding.ID] = a
		}
	}
	for _, c := range g.Causes {
		byID[c.Finding.ID] = c
	}
	for i := range w.Published {
		f := &w.Published[i]
		switch a := alone[f.ID]; {
		case f.Cause != 0:
			if c := byID[f.Cause]; c != nil {
				c.updateEvidence(f)
			}
		case a != nil:
			a.Finding, a.publishedAt = *f, i
			a.Moved = addHops(a.Moved, w.Moved(f.ID))
		case f.ID > last:
			a = &Alone{Finding: *f, Born: g.born(f), Moved: addHops(nil, w.Moved(f.ID)), publishedAt: i}
			if w.Late != nil {
				a.Late = min(a.Born, w.Late(f.ID))
			}
			alone[f.ID] = a
			fresh = append(fresh, a)
		}
	}
	slices.SortFunc(fresh, func(a, b *Alone) int { return cmp.Compare(a.Finding.ID, b.Finding.ID) })
	return fresh
}

// born returns the window in which the condition of a finding began, as far as the finding states it. A silence is
// found after a while.
func (g *Grouper) born(f *inference.Finding) uint64 {
	if f.Kind == inference.ExporterSilence && f.Value >= 1 && f.Value <= float64(g.Windows) {
		return g.Windows - uint64(f.Value) + 1
	}
	return g.Windows
}

// place puts new findings to causes.
func (g *Grouper) place(w *Window, fresh []*Alone) {
	pool := append(slices.Clone(g.Alone), fresh...)
	g.look(w, pool)
	for _, a := range pool {
		a.fits = fits(&a.Finding, g.scene, sortOf(&a.Finding))
	}
	g.around.fill(g.Windows, w.Map, g.Causes, pool, w.Open)
	for _, a := range pool {
		a.fits = g.around.more(a, g.scene)
		if _, a.alone = g.scene.best(a.fits); a.Finding.Element.Kind == inference.NoElement {
			a.alone = price(inference.Element{})
		}
	}
	old := slices.DeleteFunc(slices.Clone(g.Alone), func(a *Alone) bool { return a.Born+mostPatience < g.Windows })
	g.choose(w, pool, append(old, fresh...))
	g.around = around{}
	for _, a := range pool {
		a.fits, a.behind = nil, nil
	}
	for _, a := range fresh {
		if !a.taken && len(g.Alone) < maxAlone {
			g.Alone = append(g.Alone, a)
		}
	}
	g.Alone = slices.DeleteFunc(g.Alone, func(a *Alone) bool { return a.taken })
}

// look notes what is seen in the window.
func (g *Grouper) look(w *Window, pool []*Alone) {
	g.scene = &Scene{Map: w.Map, Shown: map[inference.Element]Signs{}, Seen: w.Seen, offered: w.Offered}
	began := g.Windows // the earliest of the findings that were found late
	for _, a := range pool {
		if a.Late > 0 && a.Born+mostPatience >= g.Windows {
			began = min(began, a.Born-a.Late)
		}
	}
	for _, a := range pool {
		if !a.past || began <= a.Born+moving {
			g.scene.Show(&a.Finding)
		}
	}
	for _, c := range g.Causes {
		for _, x := range c.Shown {
			g.scene.Shown[x.Element] |= x.Signs
		}
	}
}

// between is how far the windows in which a finding can have begun are from those between two others.
func (a *Alone) between(from, to uint64) uint64 {
	switch {
	case a.Born < from:
		return from - a.Born
	case a.Born-a.Late > to:
		return a.Born - a.Late - to
	}
	return 0
}

// begun returns the latest window in which findings can begin to have begun with the new ones of a list. It is the
// present window, or an earlier one if all new findings were found late.
func (g *Grouper) begun(list []*Alone) uint64 {
	at, late := uint64(0), false
	for _, a := range list {
		if !a.taken && a.Born+mostPatience >= g.Windows {
			if a.Late == 0 {
				return g.Windows
			}
			at, late = max(at, a.Born-a.Late), true
		}
	}
	if !late {
		return g.Windows
	}
	return at
}

// before is how many windows before another one a finding began.
func (a *Alone) before(at uint64) uint64 { return at - min(a.Born, at) }

// choose makes causes of findings that stand alone and adds new ones to open causes. It begins with the greatest saving
// and ends when nothing saves any more. Findings that explain each other better than an older cause does are grouped
// without it.
func (g *Grouper) choose(w *Window, pool, recent []*Alone) {
	items, news := byElement(pool), byElement(recent)
	g.claims = g.claim(items)
	defer func() { g.claims = nil }()
	h := &savings{}
	push := func(c *Cause) {
		for _, f := range c.Fits {
			if list := news[f.Element]; len(list) > 0 {
				if s, _ := c.saves(g.scene, f, list); s > 0 {
					heap.Push(h, saving{f.Element, c, s})
				}
			}
		}
	}
	for e, list := range items {
		if len(list) > 1 {
			if s, _ := g.saves(e, list); s > 0 {
				heap.Push(h, saving{e, nil, s})
			}
		}
	}
	for _, c := range g.Causes {
		push(c)
	}
	for h.Len() > 0 {
		top := heap.Pop(h).(saving)
		now, takes := g.now(&top, items, news)
		if now < top.saves-1e-9 {
			if top.saves = now; now > 0 {
				heap.Push(h, top)
			}
			continue
		}
		c := top.cause
		if c == nil {
			if len(g.Causes) >= maxCauses {
				continue
			}
			c = g.start(w, takes)
		} else {
			for _, a := range takes {
				more, _ := c.later(a)
				c.Fits = both(c.Fits, a.fits, more)
				g.addEvidence(w, c, a)
			}
		}
		push(c)
	}
}

func byElement(list []*Alone) map[inference.Element][]*Alone {
	out := map[inference.Element][]*Alone{}
	for _, a := range list {
		for _, f := range a.fits {
			out[f.Element] = append(out[f.Element], a)
		}
	}
	return out
}

// now returns the present saving of an entry of the heap, and the findings that it takes for that.
func (g *Grouper) now(s *saving, items, news map[inference.Element][]*Alone) (float64, []*Alone) {
	if s.cause == nil {
		return g.saves(s.element, items[s.element])
	}
	i, ok := slices.BinarySearchFunc(s.cause.Fits, s.element, Fit.compare)
	if !ok {
		return 0, nil
	}
	return s.cause.saves(g.scene, s.cause.Fits[i], news[s.element])
}

// saves returns the saving if new findings join a cause whose element is that of f from then on.
func (c *Cause) saves(s *Scene, f Fit, list []*Alone) (saved float64, takes []*Alone) {
	_, was := s.best(c.Fits)
	saved = was - s.price(f.Element) - f.Misfit
	for _, a := range list {
		if a.taken || len(c.Open)+len(takes) >= maxEvidence {
			continue
		}
		more, ok := c.later(a)
		if !ok {
			continue
		}
		if less := a.alone - a.misfit(f.Element) - more; less > .05 {
			saved += less
			takes = append(takes, a)
		}
	}
	if len(takes) == 0 || saved <= .05 {
		return 0, nil
	}
	return saved, takes
}

// later returns the addition of time to the misfit of a finding with a cause. A finding long after all that the cause
// explains has to be about something similar.
func (c *Cause) later(a *Alone) (more float64, ok bool) {
	gap := a.between(c.Born, c.Last)
	if gap > soon && !lessens(a.Finding.Kind) && !slices.ContainsFunc(c.Kinds, func(t Tally) bool { return family(t.Kind) == family(a.Finding.Kind) }) {
		return 0, false
	}
	if slices.Contains(a.behind, c.Finding.ID) {
		return min(apart(gap), misfit(behindLater.Right, behindLater.Of)), gap <= longest
	}
	return apart(gap), gap <= longest
}

func (a *Alone) misfit(e inference.Element) float64 {
	i, _ := slices.BinarySearchFunc(a.fits, e, Fit.compare)
	return a.fits[i].Misfit
}

// fewAgree is how many flows whose digests fit no path name the one switch that they have in common without waiting for
// more.
const fewAgree = 2

// mostPatience is the greatest number of windows for which a finding waits for others that explain it.
const mostPatience = 4

// patience is the number of windows for which a finding waits for others. A finding of missing traffic alone waits for
// one that gives the reason. Hops fall silent a window before the exporter that reported them does. So do flows, which
// locate their delay less exactly than hops do. Digests that fit no path, and latencies in them, wait until several
// flows show their common switch, or one of them alone. Of the findings of a fault, 588 of 660 begin within 3 windows of
// the one before.
func (a *Alone) patience() uint64 {
	switch {
	case a.Finding.Kind == inference.StrangeDigests || a.unexplained:
		return mostPatience
	case lessens(a.Finding.Kind), ofFlow(&a.Finding):
		return 2
	}
	return 0
}

// saves returns the saving if an element explains some findings of a list for less than they cost alone. They wait if
// one of them does for more of its kind.
func (g *Grouper) saves(e inference.Element, list []*Alone) (saved float64, takes []*Alone) {
	saved = -g.scene.price(e)
	ready, unexplained, ripe, begun := false, 0, false, g.begun(list)
	var common []inference.HopKey // nodes on the ways of all flows whose digests fit no path
	for _, a := range list {
		gap := a.before(begun)
		if a.taken || !a.begunWith(begun, e) {
			continue
		}
		if claim, is := g.claims[a]; is && claim != e {
			continue // it belongs to another one
		}
		if s := a.alone - a.misfit(e) - apart(gap); s > 0 {
			saved += s
			takes = append(takes, a)
			waited := a.Born+a.patience() <= g.Windows
			ready = ready || waited
			if a.Finding.Kind == inference.StrangeDigests {
				unexplained, ripe = unexplained+1, ripe || waited
				if unexplained == 1 {
					common = slices.Clone(a.Moved)
				} else {
					common = slices.DeleteFunc(common, func(h inference.HopKey) bool { return !slices.Contains(a.Moved, h) })
				}
			}
		}
	}
	if unexplained >= fewAgree && len(common) == 1 && e == inference.ElementOfHop(inference.HopKey{Node: common[0].Node}) {
		ready, ripe = true, true // no other switch is on the ways of all
	}
	if len(takes) < 2 || saved <= .05 || !ready || unexplained > 0 && !ripe && e.Kind != inference.FlowElement {
		return 0, nil
	}
	return saved, takes
}

// begunWith reports whether a finding begins soon enough before a window to have a cause with findings that begin in
// it. A finding that begins much later explains only those at its own place. A past change of paths explains only
// findings that came by the flows that moved.
func (a *Alone) begunWith(begun uint64, e inference.Element) bool {
	gap := a.before(begun)
	if a.past {
		return gap <= moving
	}
	return gap <= longest && (gap <= soon || a.misfit(e) < unlikely)
}

// start makes a cause of findings that stand alone, which come by id.
func (g *Grouper) start(w *Window, takes []*Alone) *Cause {
	first := takes[0].Finding
	for _, a := range takes {
		first.Start = min(first.Start, a.Finding.Start)
	}
	c, begun := &Cause{Born: g.Windows, Last: g.Windows}, g.begun(takes)
	c.Finding = w.Start(inference.Finding{Kind: first.Kind, Start: first.Start, Updated: w.Now, Element: first.Element, Learning: true})
	for i, a := range takes {
		c.Born = min(c.Born, a.Born)
		fits := slices.Clone(a.fits)
		for k := range fits {
			fits[k].Misfit += apart(a.before(begun))
		}
		if i == 0 {
			c.Fits = fits
		} else {
			c.Fits = both(c.Fits, fits, 0)
		}
	}
	g.Causes = append(g.Causes, c)
	for _, a := range takes {
		g.addEvidence(w, c, a)
	}
	return c
}

// addEvidence makes a finding evidence of a cause whose fits include those of the finding already.
func (g *Grouper) addEvidence(w *Window, c *Cause, a *Alone) {
	a.taken = true
	id := c.Finding.ID
	f := &a.Finding
	f.Cause = id
	open := w.Open(f.ID)
	if open != nil {
		open.Cause = id
	}
	if a.publishedAt >= 0 {
		w.Published[a.publishedAt].Cause = id
	} else {
		if open != nil {
			*f = *open
		}
		w.Publish(*f)
	}
	c.Last, c.Quiet = g.Windows, 0
	c.Finding.Evidence++
	if f.End == 0 {
		c.Open = append(c.Open, f.ID)
	}
	if f.FlowText() != "" && len(c.Flows) < maxFlows && !slices.Contains(c.Flows, f.Flow) {
		c.Flows = append(c.Flows, f.Flow)
	}
	if !passes(f) {
		c.Moved = addHops(c.Moved, a.Moved)
	}
	c.show(f)
	c.count(f, true)
}

// show notes what a finding shows, within the bound.
func (c *Cause) show(f *inference.Finding) {
	sign := signOf(f.Kind)
	for i := range c.Shown {
		if c.Shown[i].Element == f.Element {
			c.Shown[i].Signs |= sign
			return
		}
	}
	if sign != 0 && f.Element.Kind != inference.NoElement && len(c.Shown) < maxShown {
		c.Shown = append(c.Shown, Showing{f.Element, sign})
	}
}

// updateEvidence updates a cause by a finding that is its evidence already.
func (c *Cause) updateEvidence(f *inference.Finding) {
	if i := slices.Index(c.Open, f.ID); i >= 0 && f.End != 0 {
		c.Open = slices.Delete(c.Open, i, i+1)
	}
	c.count(f, false)
}

// count brings the tally of a kind up to date.
func (c *Cause) count(f *inference.Finding, more bool) {
	i := slices.IndexFunc(c.Kinds, func(t Tally) bool { return t.Kind == f.Kind })
	if i < 0 {
		c.Kinds = append(c.Kinds, Tally{Kind: f.Kind, Lead: *f})
		i = len(c.Kinds) - 1
	}
	t := &c.Kinds[i]
	if more {
		t.Count++
	}
	t.Severity = max(t.Severity, f.Severity)
	lead := &t.Lead
	if f.Severity > lead.Severity || f.Severity == lead.Severity && f.ID < lead.ID || f.ID == lead.ID && f.End == 0 {
		*lead = *f
	}
	c.Finding.Learning = c.Finding.Learning && f.Learning
	c.news = true
}

// rests reports whether nothing that a cause explains is to be seen at present: all of its evidence has ended, or rests.
func (c *Cause) rests(open func(id uint64) *inference.Finding) bool {
	return !slices.ContainsFunc(c.Open, func(id uint64) bool {
		f := open(id)
		return f != nil && !f.Resting
	})
}

// end publishes the causes that changed, ends those whose evidence has ended, and forgets findings without a cause.
func (g *Grouper) end(w *Window) {
	g.Causes = slices.DeleteFunc(g.Causes, func(c *Cause) bool {
		if c.Quiet++; len(c.Open) > 0 {
			c.Quiet = 0
		}
		if c.Quiet > w.Settle {
			c.describe(g, w)
			c.Finding.End = max(c.Finding.Start, w.Now-int64(c.Quiet-1)*w.Length)
			c.Finding.Text = "ended: " + c.Finding.Text
			w.Publish(*c.Finding)
			return true
		}
		if c.news {
			c.Finding.Resting = c.rests(w.Open)
			c.describe(g, w)
			if f := c.Finding; !c.openBefore || f.Severity > c.previous.Severity || f.Element != c.previous.Element || f.Resting != c.previous.Resting {
				w.Publish(*f)
			}
		}
		return false
	})
	g.Alone = slices.DeleteFunc(g.Alone, func(a *Alone) bool {
		if a.Finding.End == 0 {
			return false
		}
		a.Quiet++
		return a.Quiet > w.Settle && !(a.reroutes() && g.Windows < a.Born+longest)
	})
}

// reroutes reports whether a finding is that many flows moved. They pass other places from then on, also when no more
// of them move. Slow effects at these places are found later.
func (a *Alone) reroutes() bool {
	return a.Finding.Kind == inference.PathChanged && a.Finding.Severity > inference.Info
}

// addHops adds hops that are not there yet, within the bound.
func addHops(to, more []inference.HopKey) []inference.HopKey {
	for _, h := range more {
		if len(to) < maxHops && !slices.Contains(to, h) {
			to = append(to, h)
		}
	}
	return to
}

// saving is the saving by an element as a cause, or as the element of an open one.
type saving struct {
	element inference.Element
	cause   *Cause
	saves   float64
}

// savings is a heap, the largest first; of equal ones those of open causes, the oldest first.
type savings []saving

func (s savings) Len() int { return len(s) }
func (s savings) Less(i, j int) bool {
	if s[i].saves != s[j].saves {
		return s[i].saves > s[j].saves
	}
	if a, b := s[i].cause, s[j].cause; a != b {
		return a != nil && (b == nil || a.Finding.ID < b.Finding.ID)
	}
	return s[i].element.Compare(s[j].element) < 0
}
func (s savings) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *savings) Push(x any)   { *s = append(*s, x.(saving)) }
func (s *savings) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
