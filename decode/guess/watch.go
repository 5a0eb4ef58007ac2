package guess

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// Bounds of the state of a [Watch].
const (
	maxSenders = 256  // senders that are looked at
	maxAdopted = 4096 // senders with a dialect of their own
	maxSamples = 48   // of a sender
	maxBytes   = 512  // of a sample; telemetry stands at the front
	maxJudged  = 16   // senders at a time: each takes some milliseconds
)

// The evidence that is needed to adopt a dialect. An exporter that package sequence trusts has reported for a second,
// too.
const (
	enough   = 16         // samples
	span     = int64(1e9) // ns from the first to the last of them
	apart    = 30_000_000 // ns between samples, so that a burst is one
	freely   = 8          // samples that are taken at once
	pause    = int64(10e9)
	maxPause = int64(600e9)
)

// The evidence that is needed to give up an adopted dialect. A forger of an address has to keep the real sender
// silent for as long.
const (
	roundsAgainst = 3
	spanAgainst   = int64(10e9)
	apartAgainst  = spanAgainst / (maxSamples - freely - 8) // ns between samples, so that they span as much
)

// Memory is the most memory of a [Watch], in bytes.
const Memory = maxSenders*(maxSamples*(maxBytes+128)+256) + maxAdopted*1024

// Watch observes senders whose frames cannot be read. It is for one goroutine, and reads no clock.
type Watch struct {
	guesser *Guesser
	adopt   bool
	senders map[decode.Addr]*sender
	adopted map[decode.Addr]*sender
	refused uint64 // senders for which there was no place
	foreign map[foreigner]*foreignCount

	interval, likely Interval // of [Watch.Look]: of all frames, and of those to a port that a profile names
}

// sender is one address that frames come from.
type sender struct {
	src     decode.Addr
	current *demux.Profile // that did not read them
	samples []Sample
	looked  uint64 // frames that were looked at closely; the samples are those of them that were not read
	innocent,
	clean uint64 // frames that were read: of those looked at, and of all others since the round began
	round            uint64 // frames that were not read since the round began
	unread           uint64 // ever
	dropped          uint64 // of those, in no statistics
	part             bool   // not every such frame was counted
	sampled          int64  // time of the last sample
	first, last      int64  // times of the samples
	seen             int64  // time of the last frame
	touched          int64  // when a step last found new ones, by its own time: captures are read long after they were made
	counted          uint64 // frames at that step
	rest             int64  // no samples are taken before
	wait             int64  // the next rest
	state            State
	best             []Score
	explained, among int
	failed           int    // of those among, where none explains them: others have no trait of a dialect
	most             string // profile that explains most of them, where none explains all
	content          string // the content by the best one
	gre              uint16 // under which protocol number of GRE the best one finds it; 0 for those that it names
	port             uint16 // where, if all of the best were given one that they do not name
	short            bool   // there is too little to adopt it
	nameless         bool   // the hops that it finds name no node, so that it is not adopted
	votes            int    // for another dialect than the adopted one, round after round
	voted            string
	own              *demux.Profile // that was adopted
	stored           uint64         // reports that were in statistics, read wrongly, before that
	since            int64          // of that
	as               Finding        // the finding at its adoption
	hidden           *Finding       // INT in GRE for which the adopted dialect does not look; nil without
	shown            []byte         // of the first sample
}

// State is the verdict on a sender.
type State uint8

// The states.
const (
	Gathering State = iota
	Adopted         // it has the dialect that explains its frames
	Suggested       // one dialect explains them
	Tied            // several do
	Mixed           // one does, but others of its frames are read without it
	Unknown         // none does
	Plain           // none does, and its own reads them: nothing in them shows a dialect
	Foreign         // they are of another family of formats, which their first bytes show
)

var stateNames = [...]string{"gathering", "adopted", "suggested", "tied", "mixed", "unknown", "plain", "foreign"}

func (s State) String() string { return stateNames[min(s, Foreign)] }

// NewWatch makes a watch that tries profiles. With adopt, it adopts a profile that explains everything.
func NewWatch(profiles []demux.Profile, adopt bool) *Watch {
	return &Watch{guesser: New(profiles), adopt: adopt, senders: map[decode.Addr]*sender{}, adopted: map[decode.Addr]*sender{}, foreign: map[foreigner]*foreignCount{}}
}

// Try changes the profiles that are tried from now on.
func (w *Watch) Try(profiles []demux.Profile) { w.guesser = New(profiles) }

// Watching reports whether frames of any sender are being gathered, so that those which are read count, too.
func (w *Watch) Watching() bool { return len(w.senders) > 0 }

// Unread counts n frames of src at a time that the profile did not read, and returns how many samples of them are
// wanted. With dropped, they are in no statistics.
func (w *Watch) Unread(src decode.Addr, current *demux.Profile, n uint64, dropped bool, time int64) (want int) {
	s := w.find(src, current, time)
	if s == nil {
		return 0
	}
	s.seen = max(s.seen, time)
	s.round += n
	s.unread += n
	if dropped {
		s.dropped += n
	}
	if time < s.rest {
		return 0
	}
	return maxSamples - len(s.samples)
}

// Frame tries a frame that is no telemetry for the profile, and counts it if it is for another. With part, others
// were not tried.
func (w *Watch) Frame(current *demux.Profile, x Sample, part bool) bool {
	if !w.guesser.Explains(&x) && w.guesser.Hidden(current, &x) == 0 {
		return false
	}
	want := w.Unread(x.Src, current, 1, true, x.Time)
	if s := w.senders[x.Src]; s != nil {
		s.part = s.part || part
	}
	if want > 0 {
		w.Add(x)
	}
	return true
}

// foreigner is a sender of a family of formats that its profile does not read.
type foreigner struct {
	src     decode.Addr
	format  decode.Format
	profile string
	port    Port
}

// foreignCount is how many they were, and the beginning of the first.
type foreignCount struct {
	n      uint64
	sample []byte
}

// Port is a UDP port that takes one kind of datagrams; the zero value is any port.
type Port struct {
	Number uint16
	Only   demux.Kind
}

// Alien reports whether r failed at a port that does not take its format: no dialect of reports is looked for there.
func (p Port) Alien(r *decode.Report) bool {
	return r.Err.Reason != 0 && p.Only > demux.ReportsOnly && !p.Only.Takes(r.Format)
}

// Foreign counts n datagrams of src whose format family its profile does not read, or the port of arrival does not
// accept. One of them is x.
func (w *Watch) Foreign(src decode.Addr, f decode.Format, current *demux.Profile, at Port, n uint64, x *Sample) {
	if at.Only.Takes(f) {
		at = Port{} // its profile is the reason
	}
	k := foreigner{src, f, current.Name, at}
	c := w.foreign[k]
	if c == nil {
		if len(w.foreign) >= maxSenders {
			w.refused++
			return
		}
		c = &foreignCount{sample: w.guesser.show(x)}
		w.foreign[k] = c
	}
	c.n += n
}

// Read counts n frames of src that its profile reads.
func (w *Watch) Read(src decode.Addr, n uint64) {
	if s := w.senders[src]; s != nil {
		s.clean += n
	}
}

// Add adds a sample of the frames that [Watch.Unread] counted. It keeps a copy.
func (w *Watch) Add(x Sample) {
	s := w.senders[x.Src]
	if s == nil || len(s.samples) >= maxSamples || x.Time < s.rest {
		return
	}
	gap := int64(apart)
	if s.own != nil {
		gap = apartAgainst
	}
	if len(s.samples) >= freely && x.Time < s.sampled+gap {
		return
	}
	s.looked++
	if w.guesser.Reads(s.current, &x) && w.guesser.Hidden(s.current, &x) == 0 {
		s.innocent++
		return
	}
	s.sampled = max(s.sampled, x.Time)
	if len(s.samples) == 0 {
		s.first, s.last = x.Time, x.Time
	}
	s.first, s.last = min(s.first, x.Time), max(s.last, x.Time)
	x.Length = max(x.Length, len(x.Data))
	x.Data = slices.Clone(x.Data[:min(len(x.Data), maxBytes)])
	s.samples = append(s.samples, x)
}

// find finds the sender, or makes it.
func (w *Watch) find(src decode.Addr, current *demux.Profile, time int64) *sender {
	s := w.senders[src]
	if s != nil {
		if s.current.Name != current.Name {
			s.current = current
			s.beginRound(0)
		}
		return s
	}
	if s = w.adopted[src]; s != nil && len(w.senders) < maxSenders {
		s.current = current
		s.beginRound(0)
		w.senders[src] = s
		return s
	}
	if len(w.senders) >= maxSenders && !w.makeRoom(time) {
		w.refused++
		return nil
	}
	s = &sender{src: src, current: current, seen: time}
	w.senders[src] = s
	return s
}

// makeRoom removes the sender with the fewest unread frames, except those that are about to be judged.
func (w *Watch) makeRoom(time int64) bool {
	var least *sender
	for _, s := range w.senders {
		if s.state == Gathering && w.adopted[s.src] == nil && len(s.samples) >= enough && time-s.seen < span {
			continue // it is about to be judged
		}
		if least == nil || cmp.Or(cmp.Compare(s.unread, least.unread), s.src.Compare(least.src)) < 0 {
			least = s
		}
	}
	if least == nil {
		return false
	}
	delete(w.senders, least.src)
	return true
}

// beginRound begins a round whose samples are gathered after a rest.
func (s *sender) beginRound(rest int64) {
	s.samples, s.looked, s.innocent, s.clean, s.round, s.rest = nil, 0, 0, 0, 0, rest
	s.first, s.last, s.sampled = 0, 0, 0
}

// Change is a sender whose dialect changes, and the samples that were gathered, to be read with it.
type Change struct {
	Src     decode.Addr
	Profile *demux.Profile // nil goes back to that of the settings
	Samples []Sample
}

// Step judges the senders with enough samples and returns the changes, in the order of addresses. The function known
// returns how many reports of a sender were read in all. Those that the watch counts as unread may be among them. A
// nil known stands for none. The function home returns the profile of the settings for an address.
func (w *Watch) Step(now int64, home func(decode.Addr) *demux.Profile, known func(decode.Addr) uint64) (changes []Change) {
	judged := 0
	for _, src := range w.order() {
		s := w.senders[src]
		if judged == maxJudged {
			break // the others' samples wait
		}
		if s.counted != s.unread {
			s.touched, s.counted = now, s.unread
		}
		if s.state != Gathering && s.state != Adopted && now-s.touched > maxPause {
			delete(w.senders, src)
			continue
		}
		old := w.adopted[src] == s
		need := span
		if old {
			need = spanAgainst
		}
		if len(s.samples) < enough || s.last-s.first < need {
			if old && now-s.touched > pause { // its sender has stopped
				s.hide(w.guesser)
				s.beginRound(0)
				s.votes = 0
				delete(w.senders, src)
			} else if s.looked >= enough && s.innocent == s.looked {
				s.rested(now)
			}
			continue
		}
		judged++
		before := uint64(0)
		if known != nil && !old {
			before = known(src)
		}
		s.judge(w.guesser, before > s.unread-min(s.dropped, s.unread))
		if old {
			changes = append(changes, w.reconsider(s, now, home)...)
			continue
		}
		p := home(src)
		if s.state == Suggested && !s.nameless && s.gre == 0 && w.adopt && p.Name == autoName && len(w.adopted) < maxAdopted {
			s.state, s.stored = Adopted, s.unread-min(s.dropped, s.unread)
			changes = append(changes, w.give(s, now))
			continue
		}
		s.rested(now)
	}
	return changes
}

// give adopts the best profile for the sender.
func (w *Watch) give(s *sender, now int64) Change {
	own := s.best[0].Profile
	s.own, s.since, s.as, s.hidden = &own, now, s.finding(), nil
	w.adopted[s.src] = s
	delete(w.senders, s.src)
	c := Change{s.src, s.own, s.samples}
	s.beginRound(0)
	return c
}

// autoName is the profile that a dialect may take the place of by itself. The operator chose the others.
const autoName = "auto"

func (s *sender) rested(now int64) {
	s.wait = min(max(2*s.wait, pause), maxPause)
	s.beginRound(now + s.wait)
}

// reconsider gives up an adopted dialect when another one explains everything in several rounds, and nothing supports
// the adopted one.
func (w *Watch) reconsider(s *sender, now int64, home func(decode.Addr) *demux.Profile) (changes []Change) {
	s.note()
	name, back := "", home(s.src).Name
	switch isHome := func(x Score) bool { return x.Profile.Name == back }; {
	case s.nameless || s.gre != 0:
	case s.state == Suggested:
		name = s.best[0].Profile.Name
	case s.state == Tied && s.innocent+s.clean == 0 && slices.ContainsFunc(s.best, isHome):
		name = back // that of the settings needs no proof
	}
	switch {
	case name == "":
		s.votes = 0
	case name == s.voted:
		s.votes++
	default:
		s.voted, s.votes = name, 1
	}
	s.state = Adopted
	if s.votes < roundsAgainst {
		s.beginRound(now)
		return nil
	}
	s.votes = 0
	if name != back {
		return []Change{w.give(s, now)}
	}
	delete(w.senders, s.src)
	delete(w.adopted, s.src)
	return []Change{{Src: s.src, Samples: s.samples}}
}

// note keeps the finding of this round, if its frames hold INT in GRE that the adopted dialect ignores.
func (s *sender) note() {
	if s.gre == 0 {
		return
	}
	f := s.finding()
	f.Unread = s.round
	if s.hidden != nil {
		f.Unread += s.hidden.Unread
	}
	f.Stored = min(f.Stored, f.Unread)
	s.hidden = &f
}

// hide judges an unfinished round of a sender with a dialect, by the samples so far, for INT in GRE alone.
func (s *sender) hide(g *Guesser) {
	if s.own == nil || len(s.samples) == 0 {
		return
	}
	s.judge(g, false)
	s.note()
	s.state = Adopted
}

// judge decides the state of a sender. With before, frames of it were read that may be among the samples.
func (s *sender) judge(g *Guesser, before bool) {
	v := g.Judge(s.samples, s.current)
	s.shown = g.show(&s.samples[0])
	s.gre = 0
	s.among, s.short, s.most, s.nameless = v.Samples, len(s.samples) < enough || s.last-s.first < span, "", v.Nameless
	if m := v.Most; m != nil {
		s.most, s.explained = m.Profile.Name, m.Explained
	}
	switch {
	case len(v.Best) == 0 || v.Nameless && slices.ContainsFunc(v.Best, func(b Score) bool { return alike(&b.Profile, s.current) }):
		s.state, s.failed = Plain, 0
		for i := range s.samples {
			if g.Fails(s.current, &s.samples[i]) {
				s.state = Unknown
				s.failed++
			}
		}
		return
	case len(v.Best) > 1:
		s.state = Tied
	case s.innocent > 0 || s.clean > 0 || before:
		s.state = Mixed
	default:
		s.state = Suggested
	}
	s.best, s.explained, s.content = v.Best, v.Best[0].Explained, v.Best[0].content
	s.port, s.gre = s.best[0].Port, s.best[0].GRE
	for i := range s.best {
		if s.best[i].Port != s.port {
			s.port = 0
		}
		s.best[i].text = nil
	}
}

// Finish judges all senders, with any number of samples. It names the profiles that explain them, and adopts none.
func (w *Watch) Finish() {
	for _, src := range w.order() {
		switch s := w.senders[src]; {
		case s == w.adopted[src]:
			s.hide(w.guesser)
			s.beginRound(0)
		case s.state == Gathering && len(s.samples) > 0:
			s.judge(w.guesser, false)
		}
	}
}

// Settle judges all senders as [Watch.Finish] does, and adopts profiles that explain everything. It is for callers
// that will read the same frames once more.
func (w *Watch) Settle(home func(decode.Addr) *demux.Profile) {
	w.Finish()
	for _, src := range w.order() {
		if s := w.senders[src]; s.state == Suggested && !s.short && !s.nameless && s.gre == 0 && home(src).Name == autoName && len(w.adopted) < maxAdopted {
			s.state = Adopted
			w.give(s, s.seen)
		}
	}
}

// Inherit takes over the adoptions of another watch, which is not to be used any more.
func (w *Watch) Inherit(o *Watch) {
	for src, s := range o.adopted {
		w.adopted[src] = s
	}
}

// Forget removes the adoptions of addresses for which keep is false.
func (w *Watch) Forget(keep func(decode.Addr) bool) {
	for src := range w.adopted {
		if !keep(src) {
			delete(w.adopted, src)
			delete(w.senders, src)
		}
	}
}

// Adoptions returns the adopted dialects of all senders, for [demux.Router.Adopt]; nil without any.
func (w *Watch) Adoptions() *demux.Adopted {
	if len(w.adopted) == 0 {
		return nil
	}
	a := &demux.Adopted{Of: map[decode.Addr]int{}}
	for _, src := range sorted(w.adopted) {
		p := w.adopted[src].own
		i := slices.IndexFunc(a.Profiles, func(q demux.Profile) bool { return alike(&q, p) })
		if i < 0 {
			i = len(a.Profiles)
			a.Profiles = append(a.Profiles, *p)
		}
		a.Of[src] = i
	}
	return a
}

func (w *Watch) order() []decode.Addr { return sorted(w.senders) }

func sorted(m map[decode.Addr]*sender) []decode.Addr {
	list := make([]decode.Addr, 0, len(m))
	for src := range m {
		list = append(list, src)
	}
	slices.SortFunc(list, decode.Addr.Compare)
	return list
}
