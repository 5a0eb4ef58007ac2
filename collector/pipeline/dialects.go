package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/ingest"
)

// dialects looks at what the profiles cannot read. Workers gather what is doubtful while they decode, and hand it over once
// a batch; trying is done by one goroutine, beside them.
type dialects struct {
	mu        sync.Mutex
	watch     *guess.Watch
	router    *demux.Router // of the settings alone
	announced map[findingKey]string
	toReread  []guess.Sample // to be read with a dialect that was adopted since
	log       *slog.Logger

	adopted  atomic.Pointer[demux.Adopted]
	watching atomic.Bool // frames of an exporter are being gathered
	waiting  atomic.Bool // there is something to be read again
	reread   atomic.Uint64
}

// NewDialects returns nil if no dialects are to be recognised. Without adopt, none is adopted. The known dialects of
// single senders are in adopted. The dialects of captures that are to be read beside the sockets are in looked, which
// is nil without captures.
func NewDialects(e *exporters.Config, adopt bool, router *demux.Router, adopted *demux.Adopted, looked *guess.Watch, log *slog.Logger) (*dialects, error) {
	if !e.Recognises() {
		return nil, nil
	}
	list, err := e.Candidates()
	if err != nil {
		return nil, err
	}
	d := &dialects{watch: guess.NewWatch(list, adopt && e.Adopts()), router: router, announced: map[findingKey]string{}, log: log}
	d.adopted.Store(adopted)
	if looked != nil {
		d.watch.Inherit(looked)
		d.adopted.Store(d.watch.Adoptions())
	}
	return d, nil
}

// findingKey is the subject of findings.
type findingKey struct {
	src    decode.Addr
	format decode.Format // of a family that is not read
	port   uint16        // that takes another one; 0 where the profile is the reason
	gre    uint16        // protocol number of GRE that hides INT
}

// doubts holds the frames that a worker gathers from a batch.
type doubts struct {
	watching      bool
	interval      guess.Interval
	foreign       []int // frames that are no telemetry, to be looked at
	senders       []doubt
	otherFamilies []otherFamily
	n             int  // of senders in use
	passed        bool // some were not looked at

	router  *demux.Router // that has what was adopted
	adopted *demux.Adopted
}

// strange is a sender of datagrams of a family that its profile does not read.
type otherFamily struct {
	src    decode.Addr
	format decode.Format
	at     guess.Port
	n      uint64
	i      int // of one of the frames
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
	dropped bool         // it is in no statistics
	within  guess.Sample // the packet in a record that is meant; the zero value is the frame
}

// keep takes a frame as a sample. When there are many, every other one makes room.
func (s *doubt) keep(x doubtful) {
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
	s.frames = append(s.frames, x)
}

// Bounds of a batch.
const (
	mostSenders = 64
	mostFrames  = 40 // of a sender; half of them are enough to judge it
	mostForeign = 32
)

// look examines frame i of a batch. The last n reports of b come from it.
func (d *doubts) look(i int, f *ingest.Frame, at guess.Port, b *decode.LazyBatch, n int) {
	if n == 0 {
		if len(d.foreign) == mostForeign {
			d.passed = true
		} else if d.interval.Next() {
			d.foreign = append(d.foreign, i)
		}
		return
	}
	x := b.List[len(b.List)-1]
	if x.Shape != nil && !d.watching {
		return
	}
	last := x.Report()
	alien, format := at.Alien(last), last.Format
	if alien && last.Err.Reason != decode.NotRead {
		format = 0
	}
	if alien || last.Err.Reason == decode.NotRead {
		if k := len(d.otherFamilies) - 1; k >= 0 && d.otherFamilies[k].src == last.Exporter && d.otherFamilies[k].format == format && d.otherFamilies[k].at == at {
			d.otherFamilies[k].n++
		} else {
			d.otherFamilies = append(d.otherFamilies, otherFamily{last.Exporter, format, at, 1, i})
		}
		return
	}
	doubts := guess.Doubtful(last)
	if !doubts && !d.watching {
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
	if !doubts {
		s.read++
		return
	}
	s.unread++
	s.time = max(s.time, f.Time)
	dropped := last.Err.Reason != 0
	if dropped {
		s.dropped++
	}
	s.keep(doubtful{i, dropped, guess.Within(last, guess.Sample{})})
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

// begin prepares w for a batch: its decoder uses the adopted dialects.
func (x *dialects) begin(w *Worker, dec *demux.Router) {
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
func (x *dialects) end(w *Worker, dec *demux.Router, frames []ingest.Frame) {
	d := &w.doubts
	if d.n+len(d.foreign)+len(d.otherFamilies) == 0 {
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
				one := sample(&frames[f.i], s.src, f.dropped)
				if p := &f.within; p.Within {
					one.Link, one.Data, one.Length, one.Within = p.Link, p.Data, p.Length, true
				}
				x.watch.Add(one)
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
	for _, s := range d.otherFamilies {
		one := sample(&frames[s.i], s.src, true)
		x.watch.Foreign(s.src, s.format, dec.Profile(s.src), s.at, s.n, &one)
	}
	d.n, d.foreign, d.otherFamilies = 0, d.foreign[:0], d.otherFamilies[:0]
	x.watching.Store(x.watch.Watching())
}

func sample(f *ingest.Frame, src decode.Addr, dropped bool) guess.Sample {
	return guess.Sample{Link: f.Link, Src: src, Data: f.Data, Length: max(f.Length, len(f.Data)), Time: f.Time, Dropped: dropped}
}

// Step tries the gathered frames, and logs new findings. Function known returns how many reports of an exporter were
// read.
func (x *dialects) Step(now int64, known func(decode.Addr) uint64) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	changes := x.watch.Step(now, x.router.Profile, known)
	for _, c := range changes {
		for _, s := range c.Samples {
			if s.Dropped {
				x.toReread = append(x.toReread, s)
			}
		}
	}
	if len(changes) > 0 {
		x.adopted.Store(x.watch.Adoptions())
		x.waiting.Store(len(x.toReread) > 0)
	}
	x.watching.Store(x.watch.Watching())
	x.logNews()
}

// logNews logs findings that differ from the last logged ones of their senders.
func (x *dialects) logNews() {
	var news []guess.Finding
	seen := map[findingKey]string{}
	for _, f := range x.watch.Findings() {
		subject, key := findingKey{f.Src, f.Format, f.Port, f.GRE}, f.State.String()+" "+fmt.Sprint(f.Profiles)
		seen[subject] = key
		if x.announced[subject] != key {
			news = append(news, f)
		}
	}
	x.announced = seen
	for i := range news {
		f := &news[i]
		if f.State == guess.Adopted {
			x.log.Info("dialect adopted", "exporter", f.Src.String(), "dialect", f.Profiles[0], "text", f.String())
		} else if f.State == guess.Foreign {
			x.log.Warn("datagrams are not read", "exporter", f.Src.String(), "format", f.Format.String(), "text", f.String())
		} else {
			x.log.Warn("reports cannot be read", "exporter", f.Src.String(), "text", f.String())
		}
	}
}

// Finish logs senders with too few frames.
func (x *dialects) Finish() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watch.Finish()
	x.logNews()
}

// Run tries dialects every second until ctx ends.
func (x *dialects) Run(ctx context.Context, now func() int64, known func(decode.Addr) uint64) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			x.Step(now(), known)
		}
	}
}

// Findings returns all findings about dialects.
func (x *dialects) Findings() []guess.Finding {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watch.Findings()
}

// Reread counts reports that were read again.
func (x *dialects) Reread() uint64 {
	if x == nil {
		return 0
	}
	return x.reread.Load()
}

// reload applies other settings. The operator's choices override the adopted ones.
func (x *dialects) reload(router *demux.Router, candidates []demux.Profile) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.router = router
	x.watch.Try(candidates)
	x.watch.Forget(func(a decode.Addr) bool { return router.Profile(a).Name == "auto" })
	x.adopted.Store(x.watch.Adoptions())
}

// drain returns the samples to read again.
func (x *dialects) drain() []guess.Sample {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.toReread
	x.toReread = nil
	x.waiting.Store(false)
	return list
}

// rereadSamples reads frames that were dropped before their sender's dialect was known. They count as received now.
// Their sequence numbers were tracked when they came.
func (p *Pipeline) rereadSamples(w *Worker) {
	x := p.Dialects
	dec := w.decoder.Load()
	x.begin(w, dec)
	for _, s := range x.drain() {
		if s.Link == ingest.LinkUDP {
			dec.Lazy(&w.in, s.Src, s.Data, s.Length, s.Time)
		} else {
			dec.LazyFrame(&w.in, s.Link, s.Data, s.Length, s.Time)
		}
		if len(w.in.List) == 0 {
			continue
		}
		p.place(w)
		n := uint64(len(w.in.List))
		x.reread.Add(n)
		p.ledger.Receive(ledger.Ring, n)
		p.border.RLock()
		p.scatter(w, &w.in)
		p.border.RUnlock()
		w.in.Reset()
	}
}
