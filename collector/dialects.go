package collector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/ingest"
)

// dialects looks at what the profiles cannot read. Workers gather what is doubtful while they decode, and hand it over once
// a batch; trying is done by one goroutine, beside them.
type dialects struct {
	mu     sync.Mutex
	watch  *guess.Watch
	router *demux.Router // of the settings alone
	told   map[decode.Addr]string
	again  []guess.Sample // to be read with a dialect that was adopted since

	adopted  atomic.Pointer[demux.Adopted]
	watching atomic.Bool // somebody's frames are being gathered
	waiting  atomic.Bool // there is something to be read again
	reread   atomic.Uint64
}

// newDialects gives nil where nobody wants to know. adopt is false where a profile was chosen for all frames.
func newDialects(e *Exporters, opt *Options, router func() *demux.Router) (*dialects, error) {
	if !e.Recognises() {
		return nil, nil
	}
	list, err := e.Candidates()
	if err != nil {
		return nil, err
	}
	// A replay has looked at its capture before, so that one profile reads it from its beginning to its end.
	d := &dialects{watch: guess.NewWatch(list, e.Adopts() && !opt.Policy.CaptureTime), router: router(), told: map[decode.Addr]string{}}
	d.adopted.Store(opt.Adopted)
	if opt.Looked != nil {
		d.watch.Inherit(opt.Looked)
		d.adopted.Store(d.watch.Adoptions())
	}
	return d, nil
}

// doubts is what a worker gathers of a batch.
type doubts struct {
	watching bool
	interval guess.Interval
	foreign  []int // frames that are no telemetry, to be looked at
	senders  []doubt
	n        int  // of senders in use
	passed   bool // some were not looked at

	router  *demux.Router // that has what was adopted
	adopted *demux.Adopted
}

// doubt is one sender in a batch.
type doubt struct {
	src          decode.Addr
	unread, read uint64
	dropped      uint64
	frames       []doubtful // some of those that were not read, from all of the batch
	every        uint64     // of how many one is taken
	time         int64
}

// doubtful is a frame of a batch that was not read.
type doubtful struct {
	i       int
	dropped bool // it is in no statistics
}

// keep takes a frame as a sample. When there are many, every other one makes room.
func (s *doubt) keep(i int, dropped bool) {
	if s.unread%s.every != 0 {
		return
	}
	if len(s.frames) == mostFrames {
		kept := s.frames[:0]
		for k, f := range s.frames {
			if k%2 == 1 {
				kept = append(kept, f)
			}
		}
		s.frames = kept
		s.every *= 2
	}
	s.frames = append(s.frames, doubtful{i, dropped})
}

// Bounds of a batch.
const (
	mostSenders = 64
	mostFrames  = 40 // of a sender; half of them are enough to judge it
	mostForeign = 32
)

// look looks at frame i of a batch, of which the last n reports of b were made.
func (d *doubts) look(i int, f *ingest.Frame, b *decode.Batch, n int) {
	if n == 0 {
		if len(d.foreign) == mostForeign {
			d.passed = true
		} else if d.interval.Next() {
			d.foreign = append(d.foreign, i)
		}
		return
	}
	last := b.Reports[len(b.Reports)-1]
	doubtful := guess.Doubtful(last)
	if !doubtful && !d.watching {
		return
	}
	src := last.Exporter
	if last.Has&decode.HasExporter == 0 {
		var ok bool
		if src, ok = guess.Sender(f.Link, f.Data, f.Length); !ok {
			return
		}
	}
	s := d.sender(src)
	if s == nil {
		return
	}
	if !doubtful {
		s.read++
		return
	}
	s.unread++
	s.time = max(s.time, f.Time)
	dropped := last.Err.Reason != 0
	if dropped {
		s.dropped++
	}
	s.keep(i, dropped)
}

// sender finds the sender, or makes it; nil if there is no room in the batch.
func (d *doubts) sender(src decode.Addr) *doubt {
	for k := d.n - 1; k >= 0; k-- {
		if d.senders[k].src == src {
			return &d.senders[k]
		}
	}
	if d.n == mostSenders {
		return nil
	}
	if d.n == len(d.senders) {
		d.senders = append(d.senders, doubt{})
	}
	s := &d.senders[d.n]
	d.n++
	*s = doubt{src: src, frames: s.frames[:0], every: 1}
	return s
}

// begin prepares w for a batch: its decoder knows what was adopted.
func (x *dialects) begin(w *worker, dec *demux.Router) {
	d := &w.doubts
	if a := x.adopted.Load(); a != d.adopted || dec != d.router {
		if a != nil || d.adopted != nil {
			dec.Adopt(a)
		}
		d.adopted, d.router = a, dec
	}
	d.watching = x.watching.Load()
}

// end hands over what w found in the frames of a batch.
func (x *dialects) end(w *worker, dec *demux.Router, frames []ingest.Frame) {
	d := &w.doubts
	if d.n == 0 && len(d.foreign) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for k := range d.senders[:d.n] {
		s := &d.senders[k]
		if s.read > 0 {
			x.watch.Read(s.src, s.read)
		}
		if s.unread == 0 {
			continue
		}
		want := x.watch.Unread(s.src, dec.Profile(s.src), s.unread-s.dropped, false, s.time)
		want = max(want, x.watch.Unread(s.src, dec.Profile(s.src), s.dropped, true, s.time))
		for _, f := range s.frames {
			if want > 0 {
				x.watch.Add(sample(&frames[f.i], s.src, f.dropped))
			}
		}
	}
	for _, i := range d.foreign {
		f, ok := &frames[i], false
		if src, is := guess.Sender(f.Link, f.Data, f.Length); is {
			ok = x.watch.Frame(dec.Profile(src), sample(f, src, true), d.interval.Skipped() || d.passed)
		}
		d.interval.Found(ok)
	}
	d.n, d.foreign = 0, d.foreign[:0]
	x.watching.Store(x.watch.Watching())
}

func sample(f *ingest.Frame, src decode.Addr, dropped bool) guess.Sample {
	return guess.Sample{Link: f.Link, Src: src, Data: f.Data, Length: max(f.Length, len(f.Data)), Time: f.Time, Dropped: dropped}
}

// step tries what has been gathered, and gives what is new to say.
func (x *dialects) step(now int64, known func(decode.Addr) uint64) (news []guess.Finding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	changes := x.watch.Step(now, x.router.Profile, known)
	for _, c := range changes {
		for _, s := range c.Samples {
			if s.Dropped {
				x.again = append(x.again, s)
			}
		}
	}
	if len(changes) > 0 {
		x.adopted.Store(x.watch.Adoptions())
		x.waiting.Store(len(x.again) > 0)
	}
	x.watching.Store(x.watch.Watching())
	return x.news()
}

// news are findings that differ from what was told of their senders.
func (x *dialects) news() (list []guess.Finding) {
	seen := map[decode.Addr]string{}
	for _, f := range x.watch.Findings() {
		key := f.State.String() + " " + fmt.Sprint(f.Profiles)
		seen[f.Src] = key
		if x.told[f.Src] != key {
			list = append(list, f)
		}
	}
	x.told = seen
	return list
}

// findings are all that is known.
func (x *dialects) findings() []guess.Finding {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watch.Findings()
}

// reload takes over other settings. What somebody chose goes before what was adopted.
func (x *dialects) reload(router *demux.Router, candidates []demux.Profile) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.router = router
	x.watch.Try(candidates)
	x.watch.Forget(func(a decode.Addr) bool { return router.Profile(a).Name == "auto" })
	x.adopted.Store(x.watch.Adoptions())
}

// take gives what is to be read again.
func (x *dialects) take() []guess.Sample {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.again
	x.again = nil
	x.waiting.Store(false)
	return list
}

// readAgain reads what was dropped before its sender's dialect was known. It counts as received now; the sequence numbers
// were followed when it came.
func (p *pipeline) readAgain(w *worker) {
	x := p.dialects
	dec := w.decoder.Load()
	x.begin(w, dec)
	for _, s := range x.take() {
		if s.Link == ingest.LinkUDP {
			dec.DatagramCut(&w.in, s.Src, s.Data, s.Length, s.Time)
		} else {
			dec.Frame(&w.in, s.Link, s.Data, s.Length, s.Time)
		}
		if len(w.in.Reports) == 0 {
			continue
		}
		p.place(w)
		n := uint64(len(w.in.Reports))
		x.reread.Add(n)
		p.ledger.Receive(Ring, n)
		p.border.RLock()
		p.scatter(w, &w.in)
		p.border.RUnlock()
		w.in.Reset()
	}
}

// known is how many reports of the exporter at an address were read, as far as windows have ended.
func (t *exporterTotals) known(a decode.Addr) (n uint64) {
	for k, s := range t.of {
		if k.Addr == a {
			n += s.Reports
		}
	}
	return n
}

// stepDialects tries dialects, and tells the log what is new.
func (c *Collector) stepDialects(now int64) {
	x := c.pipeline.dialects
	if x == nil {
		return
	}
	known := func(a decode.Addr) uint64 {
		c.stateMu.Lock()
		defer c.stateMu.Unlock()
		return c.exporters.known(a)
	}
	for _, f := range x.step(now, known) {
		c.logDialect(&f)
	}
}

func (c *Collector) logDialect(f *guess.Finding) {
	if f.State == guess.Adopted {
		c.log.Info("dialect adopted", "exporter", f.Src.String(), "dialect", f.Profiles[0], "text", f.String())
		return
	}
	c.log.Warn("reports cannot be read", "exporter", f.Src.String(), "text", f.String())
}

// finishDialects tells the log of those of whom there was too little.
func (c *Collector) finishDialects() {
	x := c.pipeline.dialects
	if x == nil {
		return
	}
	x.mu.Lock()
	x.watch.Finish()
	news := x.news()
	x.mu.Unlock()
	for _, f := range news {
		c.logDialect(&f)
	}
}

// dialectFindings are all that is known of senders that their profiles did not read.
func (c *Collector) dialectFindings() []guess.Finding {
	list := slices.Clone(c.opt.Recognised)
	for _, f := range c.pipeline.dialects.findings() {
		if !slices.ContainsFunc(c.opt.Recognised, func(o guess.Finding) bool { return o.Src == f.Src }) {
			list = append(list, f)
		}
	}
	return list
}

// recognise tries dialects until ctx ends.
func (c *Collector) recognise(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.stepDialects(c.read().wall)
		}
	}
}

// DialectSummary is one sender whose frames its profile did not read.
type DialectSummary struct {
	Address  string   `json:"address"`
	State    string   `json:"state"` // adopted, suggested, tied, mixed, unknown
	Profile  string   `json:"profile"`
	Explains []string `json:"explained_by"`
	Unread   uint64   `json:"unread"`
	AtLeast  bool     `json:"at_least,omitempty"`
	Stored   uint64   `json:"stored_unread"` // of those, in statistics all the same
	Text     string   `json:"text"`
}

func dialectSummaries(list []guess.Finding) (out []DialectSummary) {
	for i := range list {
		f := &list[i]
		out = append(out, DialectSummary{f.Src.String(), f.State.String(), f.Profile, append([]string{}, f.Profiles...), f.Unread, f.AtLeast, f.Stored, f.String()})
	}
	return out
}

// dialectProblems are those that somebody has to decide, a few of them.
func dialectProblems(list []DialectSummary) (out []string) {
	const most = 5
	more := 0
	for i := range list {
		switch {
		case list[i].State == guess.Adopted.String():
		case len(out) < most:
			out = append(out, "dialect: "+list[i].Text)
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("dialect: and %d more exporters", more))
	}
	return out
}
