package inference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// FORMAT.md draws the layout.
const (
	partialMagic   = "HWP"
	partialVersion = 3 // of the layout
	partialOldest  = 2 // that is read
	partialCodes   = 1 // the version of units and codes

	flowBytes = 2*len(decode.Addr{}) + 6
)

// The sections of a partial, in their order.
const (
	_ = iota
	hopSection
	flowSection
	pathSection
	dropSection
	faultSection
	exporterSection
	numberSection // since version 3, as the following
	arrivalSection
	deviationSection // later than version 3, whose readers pass over it
)

// The flags of hops, flows, exporters and numbers.
const (
	isOther        = 1 << 0
	hasUtilization = 1 << 1

	isPartial = 1 << 0

	isSequenced = 1 << 0

	isAnew    = 1 << 0
	isUnknown = 1 << 1
)

// errTooLong is what becomes of a section of 4 GiB and more.
var errTooLong = errors.New("inference: a section of a partial is too long for its length field")

// AppendBinary appends the bytes of p to b. They are the same for partials that saw the same, in whatever order and
// grouping that was merged. It fails only for a partial of gigabytes, and then returns b as it was.
func (p *Partial) AppendBinary(b []byte) ([]byte, error) {
	w := writer{b: b, base: p.Start}
	w.b = append(w.b, partialMagic...)
	w.b = append(w.b, partialVersion, partialCodes)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(p.Start))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(p.End))
	for _, n := range [...]uint64{p.Reports, p.FlowCount, p.FlowBound, p.OtherHops, p.OtherPaths, p.OtherDrops, p.OtherFlows, p.OtherArrivals} {
		w.uint(n)
	}

	at := w.open(hopSection, len(p.hops.items))
	before := HopKey{}
	for _, i := range sorted(&p.order, p.hops.items, (*HopPart).order) {
		h := &p.hops.items[i]
		w.hop(h, before)
		before = h.HopKey
	}
	w.close(at)

	at = w.open(flowSection, len(p.flows.items))
	for _, i := range sorted(&p.order, p.flows.items, func(a, b *FlowPart) int { return a.Key.Compare(&b.Key) }) {
		w.busy(&p.flows.items[i])
	}
	w.close(at)

	at = w.open(pathSection, len(p.paths))
	for _, i := range sorted(&p.order, p.paths, comparePaths) {
		c := &p.paths[i]
		w.time(c.Time)
		w.flow(&c.Flow)
		w.b = binary.LittleEndian.AppendUint64(w.b, c.PathID)
		w.uint(uint64(c.Changes))
		w.uint(c.Packets)
		w.path(c.From)
		w.path(c.To)
	}
	w.close(at)

	at = w.open(dropSection, len(p.drops.items))
	for _, i := range sorted(&p.order, p.drops.items, compareDrops) {
		d := &p.drops.items[i]
		w.uint(uint64(d.Node))
		w.b = append(w.b, d.Reason)
		w.uint(d.Count)
		w.time(d.Last)
		w.flow(&d.Flow)
	}
	w.close(at)

	at = w.open(faultSection, len(p.faults.items))
	for _, i := range sorted(&p.order, p.faults.items, compareFaults) {
		d := &p.faults.items[i]
		w.b = append(w.b, byte(d.Fault))
		w.flow(&d.Flow)
		w.uint(uint64(d.Node))
		w.uint(d.Count)
		w.time(d.First)
		w.time(d.Last)
	}
	w.close(at)

	at = w.open(exporterSection, len(p.exporters.items))
	for _, i := range sorted(&p.order, p.exporters.items, func(a, b *ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) }) {
		w.exporter(&p.exporters.items[i])
	}
	w.close(at)

	at = w.open(numberSection, len(p.numbers))
	for _, i := range sorted(&p.order, p.numbers, compareNumbers) {
		w.numbers(&p.numbers[i])
	}
	w.close(at)

	at = w.open(arrivalSection, len(p.arrivals))
	for _, i := range sorted(&p.order, p.arrivals, compareArrivals) {
		a := &p.arrivals[i]
		w.time(a.Time)
		w.flow(&a.Flow)
		w.b = binary.LittleEndian.AppendUint64(w.b, a.PathID)
		w.uint(uint64(a.Changes))
		w.path(a.Path)
	}
	w.close(at)
	at = w.open(deviationSection, len(p.deviations))
	for _, i := range sorted(&p.order, p.deviations, compareDeviations) {
		w.deviation(&p.deviations[i])
	}
	w.close(at)

	p.writeLosses(&w)
	p.writeSpreads(&w)
	p.writeLinks(&w)
	p.writeStrays(&w)
	if w.tooLong {
		return b, errTooLong
	}
	return w.b, nil
}

// writer appends the parts of a partial.
type writer struct {
	b       []byte
	base    int64 // what times are relative to
	order   []int32
	tooLong bool
}

// open begins a section of n items, unless there is none, and says where it begins.
func (w *writer) open(tag byte, n int) int {
	if n == 0 {
		return -1
	}
	w.b = append(w.b, tag, 0, 0, 0, 0)
	at := len(w.b)
	w.uint(uint64(n))
	return at
}

// close ends the section that began at a place.
func (w *writer) close(at int) {
	if at < 0 {
		return
	}
	n := len(w.b) - at
	w.tooLong = w.tooLong || n > math.MaxUint32
	binary.LittleEndian.PutUint32(w.b[at-4:], uint32(n))
}

func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *writer) time(t int64) { w.b = binary.AppendVarint(w.b, t-w.base) }

func (w *writer) flow(k *decode.FlowKey) {
	w.b = append(append(w.b, k.Src[:]...), k.Dst[:]...)
	w.b = binary.LittleEndian.AppendUint16(w.b, k.SrcPort)
	w.b = binary.LittleEndian.AppendUint16(w.b, k.DstPort)
	w.b = append(w.b, k.Proto, k.IPVersion)
}

// place writes a place in the network, of which most are no other.
func (w *writer) place(k HopKey) {
	w.uint(uint64(k.Node))
	n := uint64(k.EgressIf) << 1
	if k.Other {
		n |= isOther
	}
	w.uint(n)
}

func (w *writer) path(path []HopKey) {
	w.uint(uint64(len(path)))
	for _, k := range path {
		w.place(k)
	}
}

func (w *writer) hop(h *HopPart, before HopKey) {
	flags := byte(0)
	if h.Other {
		flags |= isOther
	}
	if h.HasUtilization {
		flags |= hasUtilization
	}
	w.b = append(w.b, flags)
	if !h.Other {
		w.uint(uint64(h.Node - before.Node))
		w.uint(uint64(h.EgressIf))
	}
	w.b = h.Latency.Append(w.b)
	w.b = h.Queue.Append(w.b)
	w.uint(h.NoLatency)
	if h.HasUtilization {
		w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(h.Utilization))
	}
}

func (w *writer) busy(f *FlowPart) {
	w.flow(&f.Key)
	flags := byte(0)
	if f.Partial {
		flags |= isPartial
	}
	w.b = append(w.b, flags)
	w.uint(f.Packets)
	w.b = binary.LittleEndian.AppendUint64(w.b, f.PathID)
	w.uint(uint64(f.Changes))
	w.time(f.Last)
	w.path(f.Path)
	w.uint(uint64(len(f.Hops)))
	for _, i := range sorted(&w.order, f.Hops, func(a, b *HopSketch) int { return a.HopKey.Compare(b.HopKey) }) {
		h := &f.Hops[i]
		w.place(h.HopKey)
		w.b = h.Latency.Append(w.b)
		w.b = h.Queue.Append(w.b)
	}
}

func (w *writer) exporter(e *ExporterStats) {
	w.b = append(w.b, e.Addr[:]...)
	w.uint(uint64(e.Node))
	flags := byte(0)
	if e.Sequenced {
		flags |= isSequenced
	}
	w.b = append(w.b, e.HWID, flags)
	for _, n := range [...]uint64{e.Reports, e.Events, e.Provisional, e.Duplicated, e.Reordered, e.Late, e.Down, e.Restarts, e.Malformed} {
		w.uint(n)
	}
	w.b = binary.AppendVarint(w.b, e.Lost)
	w.time(e.Last)
}

func (w *writer) numbers(n *Numbers) {
	w.b = append(w.b, n.Addr[:]...)
	w.uint(uint64(n.Node))
	flags := byte(0)
	if n.Anew {
		flags |= isAnew
	}
	if n.Unknown {
		flags |= isUnknown
	}
	w.b = append(w.b, n.HWID, flags, n.Width)
	w.b = binary.LittleEndian.AppendUint64(w.b, n.To)
	w.uint(uint64(n.Part))
	w.b = binary.LittleEndian.AppendUint32(w.b, n.First)
	if n.Unknown {
		return
	}
	w.uint(uint64(len(n.Runs)))
	next := uint64(0)
	for _, r := range n.Runs {
		length := r.Last - r.First
		w.uint(r.First - next)
		if missing := length + 1 - r.Count; missing == 0 {
			w.uint(length << 1)
		} else {
			w.uint(length<<1 | 1)
			w.uint(missing)
		}
		next = r.Last + 2 // a number in between did not come
	}
}

// What can be wrong with the bytes of a partial.
var (
	ErrTruncated = errors.New("truncated")
	ErrVersion   = errors.New("unknown version")
	ErrCorrupt   = errors.New("corrupt")
	ErrLimit     = errors.New("more than the limit")
)

// ReadBinary makes p the partial that AppendBinary wrote, and keeps nothing of b. Lists longer than the limits are
// refused, and so is anything that AppendBinary does not write; then p is empty and the error is a [*PartialError].
// Sections that are not known here are passed over: a newer version may add them. What reading takes is in proportion
// to the length of b: its time, and its memory, of which a byte can take some 200, and some 1000 in passing.
func (p *Partial) ReadBinary(b []byte, limits Limits) error {
	p.Reset()
	r := reader{b: b}
	p.read(&r, &limits, p)
	if r.err != nil {
		p.Reset()
		return r.err
	}
	return nil
}

// MergeBinary is [Partial.ReadBinary] and [Partial.Merge] in one: it adds to p what AppendBinary wrote, refuses what ReadBinary
// refuses, and takes far less time, because counters of hops and flows are added as they are read. Rest becomes what b holds
// beside hops and flows. If it fails, rest is empty and p has some of what b holds, so that it is good for [Partial.Reset]
// only.
func (p *Partial) MergeBinary(b []byte, limits Limits, rest *Partial) error {
	rest.Reset()
	r := reader{b: b}
	rest.read(&r, &limits, p)
	if r.err != nil {
		rest.Reset()
		return r.err
	}
	p.Merge(rest)
	return nil
}

// read reads hops and flows into one partial, to what it has already, and everything else into p, which is empty.
func (p *Partial) read(r *reader, limits *Limits, into *Partial) {
	magic := r.bytes("version", len(partialMagic)+2)
	if r.err != nil {
		return
	}
	version, codes := magic[len(partialMagic)], magic[len(partialMagic)+1]
	if string(magic[:len(partialMagic)]) != partialMagic || version < partialOldest || version > partialVersion {
		r.at = 0
		r.fail("version", ErrVersion)
		return
	}
	if codes != partialCodes {
		r.at = len(partialMagic) + 1
		r.fail("codes", ErrVersion)
		return
	}
	p.Start, p.End = int64(r.uint64("start")), int64(r.uint64("end"))
	r.base = p.Start
	for _, n := range [...]*uint64{&p.Reports, &p.FlowCount, &p.FlowBound, &p.OtherHops, &p.OtherPaths, &p.OtherDrops, &p.OtherFlows} {
		*n = r.uint("counters")
	}
	if version >= 3 {
		p.OtherArrivals = r.uint("counters")
	}
	for last := byte(0); r.at < len(r.b) && r.err == nil; {
		at := r.at
		tag := r.byte("section")
		length := r.uint32("section")
		if r.err == nil && tag <= last {
			r.at = at
			r.fail("section", ErrCorrupt)
		}
		last = tag
		body := r.bytes("section", int(length))
		if r.err != nil {
			return
		}
		s := reader{b: r.b[:r.at], at: r.at - len(body), base: r.base}
		known := tag < numberSection || version >= 3
		if known && p.section(&s, tag, limits, into) && s.err == nil && s.at != len(s.b) {
			s.fail("section", ErrCorrupt)
		}
		r.err = s.err
	}
}

// section reads the body of a section, and reports whether it is one that is known.
func (p *Partial) section(r *reader, tag byte, limits *Limits, into *Partial) bool {
	switch tag {
	case hopSection:
		// The smallest items of each kind, in bytes, bound their number before anything is allocated.
		n := r.items("hops", limits.Hops, 4)
		into.hops.grow(n)
		for before := (*HopPart)(nil); n > 0 && r.err == nil; n-- {
			before = into.readHop(r, before)
		}
	case flowSection:
		n := r.items("flows", limits.Flows, flowBytes+14)
		into.flows.grow(n)
		for before := (*FlowPart)(nil); n > 0 && r.err == nil; n-- {
			before = into.readFlow(r, before)
		}
	case pathSection:
		for n := r.items("paths", limits.Paths, flowBytes+13); n > 0 && r.err == nil; n-- {
			p.readPath(r)
		}
	case dropSection:
		n := r.items("drops", limits.Drops, flowBytes+4)
		p.drops.grow(n)
		for before := (*DropStats)(nil); n > 0 && r.err == nil; n-- {
			at := r.at
			d := DropStats{Node: r.id("drop node"), Reason: r.byte("drop reason"), Count: r.uint("drops"), Last: r.time("drop time"), Flow: r.flow("drop flow")}
			if r.ordered("drop", at, before == nil || compareDrops(before, &d) < 0) {
				before, _ = p.drops.at(dropKey{d.Node, d.Reason})
				*before = d
			}
		}
	case faultSection:
		n := r.items("faults", limits.Faults, flowBytes+5)
		p.faults.grow(n)
		for before := (*DigestFault)(nil); n > 0 && r.err == nil; n-- {
			at := r.at
			d := DigestFault{Fault: Fault(r.byte("fault")), Flow: r.flow("fault flow"), Node: r.id("fault node"), Count: r.uint("faults"), First: r.time("fault time"), Last: r.time("fault time")}
			if r.ordered("fault", at, before == nil || compareFaults(before, &d) < 0) {
				before, _ = p.faults.at(faultKey{d.Fault, d.Flow})
				*before = d
			}
		}
	case exporterSection:
		n := r.items("exporters", limits.Exporters, len(decode.Addr{})+14)
		p.exporters.grow(n)
		for before := (*ExporterStats)(nil); n > 0 && r.err == nil; n-- {
			before = p.readExporter(r, before)
		}
	case numberSection:
		for n := r.items("numbers", limits.Numbers, len(decode.Addr{})+17); n > 0 && r.err == nil; n-- {
			p.readNumbers(r)
		}
	case arrivalSection:
		for n := r.items("arrivals", limits.Arrivals, flowBytes+11); n > 0 && r.err == nil; n-- {
			at := r.at
			a := Arrival{Time: r.time("arrival time"), Flow: r.flow("arrival flow"), PathID: r.uint64("arrival path id"), Changes: r.id("arrival changes")}
			from := len(p.pathHops)
			p.pathHops = r.path("arrival path", p.pathHops)
			a.Path = p.pathHops[from:len(p.pathHops):len(p.pathHops)]
			if n := len(p.arrivals); r.ordered("arrival", at, n == 0 || compareArrivals(&p.arrivals[n-1], &a) <= 0) {
				p.arrivals = append(p.arrivals, a)
			}
		}
	case deviationSection:
		for n := r.items("deviations", limits.Deviations, flowBytes+4); n > 0 && r.err == nil; n-- {
			p.readDeviation(r)
		}
	case lossSection:
		p.readLosses(r, limits)
	case spreadSection:
		p.readSpreads(r, limits)
	case linkSection:
		p.readLinks(r, limits)
	case straySection:
		p.readStrays(r, limits)
	default:
		return false
	}
	return true
}

func (p *Partial) readHop(r *reader, before *HopPart) *HopPart {
	at := r.at
	flags := r.flags("hop flags", isOther|hasUtilization)
	k := HopKey{Other: flags&isOther != 0}
	if !k.Other {
		k.Node, k.EgressIf = r.id("hop node"), r.id("hop interface")
		if before != nil {
			k.Node += before.Node
		}
	}
	// A node number that wraps is out of order, too.
	if !r.ordered("hop", at, before == nil || before.Compare(k) < 0) {
		return before
	}
	h := p.Hop(k)
	r.histogram("hop latency", &h.Latency)
	r.histogram("hop queue", &h.Queue)
	h.NoLatency += r.uint("hop records without latency")
	if flags&hasUtilization != 0 {
		at := r.at
		u := math.Float64frombits(r.uint64("hop utilization"))
		if !(u >= 0 && u <= math.MaxFloat64) || math.Signbit(u) {
			r.at = at
			r.fail("hop utilization", ErrCorrupt)
			return h
		}
		h.Utilization, h.HasUtilization = max(h.Utilization, u), true
	}
	return h
}

func (p *Partial) readFlow(r *reader, before *FlowPart) *FlowPart {
	at := r.at
	k := r.flow("flow")
	if !r.ordered("flow", at, before == nil || before.Key.Compare(&k) < 0) {
		return before
	}
	one := FlowPart{Key: k}
	one.Partial = r.flags("flow flags", isPartial)&isPartial != 0
	at = r.at
	if one.Packets = r.uint("flow packets"); one.Packets == 0 {
		r.at = at
		r.fail("flow packets", ErrCorrupt)
	}
	one.PathID = r.uint64("flow path id")
	one.Changes = r.id("flow changes")
	one.Last = r.time("flow time")
	from := len(p.pathHops)
	p.pathHops = r.path("flow path", p.pathHops)
	one.Path, p.pathHops = p.pathHops[from:], p.pathHops[:from]
	n := r.count("flow hops", math.MaxInt, 4)
	if r.err != nil {
		return before
	}
	f, known := p.flows.at(k)
	f.Merge(&one)
	for i, last := 0, (HopKey{}); i < n && r.err == nil; i++ {
		at := r.at
		k := r.place("flow hop")
		if !r.ordered("flow hop", at, i == 0 || last.Compare(k) < 0) {
			break
		}
		h := (*HopSketch)(nil)
		if known {
			h = f.Hop(k)
		} else {
			h = f.add(k)
		}
		r.histogram("flow latency", &h.Latency)
		r.histogram("flow queue", &h.Queue)
		last = k
	}
	return f
}

func (p *Partial) readPath(r *reader) {
	at := r.at
	c := PathChange{Time: r.time("path time"), Flow: r.flow("path flow"), PathID: r.uint64("path id"), Changes: r.id("path changes"), Packets: r.uint("path packets")}
	from := len(p.pathHops)
	p.pathHops = r.path("path before", p.pathHops)
	c.From = p.pathHops[from:len(p.pathHops):len(p.pathHops)]
	from = len(p.pathHops)
	p.pathHops = r.path("path after", p.pathHops)
	c.To = p.pathHops[from:len(p.pathHops):len(p.pathHops)]
	// Two changes may be the same: what was merged twice is there twice.
	if n := len(p.paths); r.ordered("path", at, n == 0 || comparePaths(&p.paths[n-1], &c) <= 0) {
		p.paths = append(p.paths, c)
	}
}

func (p *Partial) readExporter(r *reader, before *ExporterStats) *ExporterStats {
	at := r.at
	e := ExporterStats{ExporterKey: ExporterKey{Addr: r.addr("exporter"), Node: r.id("exporter node"), HWID: r.byte("exporter hardware")}}
	e.Sequenced = r.flags("exporter flags", isSequenced)&isSequenced != 0
	for _, n := range [...]*uint64{&e.Reports, &e.Events, &e.Provisional, &e.Duplicated, &e.Reordered, &e.Late, &e.Down, &e.Restarts, &e.Malformed} {
		*n = r.uint("exporter counters")
	}
	e.Lost = r.int("exporter losses")
	e.Last = r.time("exporter time")
	if !r.ordered("exporter", at, before == nil || before.ExporterKey.Compare(e.ExporterKey) < 0) {
		return before
	}
	to, _ := p.exporters.at(e.ExporterKey)
	*to = e
	return to
}

func (p *Partial) readNumbers(r *reader) {
	at := r.at
	n := Numbers{ExporterKey: ExporterKey{Addr: r.addr("numbers"), Node: r.id("numbers node"), HWID: r.byte("numbers hardware")}}
	flags := r.flags("numbers flags", isAnew|isUnknown)
	n.Anew, n.Unknown = flags&isAnew != 0, flags&isUnknown != 0
	if n.Width = r.byte("numbers width"); r.err == nil && (n.Width == 0 || n.Width > 32) {
		r.at--
		r.fail("numbers width", ErrCorrupt)
		return
	}
	n.To, n.Part = r.uint64("numbers destination"), r.id("numbers part")
	if n.First = r.uint32("numbers first"); r.err == nil && uint64(n.First)>>n.Width != 0 {
		r.at -= 4
		r.fail("numbers first", ErrCorrupt)
		return
	}
	if !n.Unknown {
		from := len(p.runs)
		p.readRuns(r, n.Width)
		n.Runs = p.runs[from:len(p.runs):len(p.runs)]
	}
	// Two may be the same, as two path changes may.
	if k := len(p.numbers); r.ordered("numbers", at, k == 0 || compareNumbers(&p.numbers[k-1], &n) <= 0) {
		p.numbers = append(p.numbers, n)
	}
}

// readRuns appends runs of numbers of so many bits. The first one begins at 0.
func (p *Partial) readRuns(r *reader, width uint8) {
	at := r.at
	k := r.count("runs", math.MaxInt, 2)
	if k == 0 && r.err == nil {
		r.at = at
		r.fail("runs", ErrCorrupt)
	}
	p.runs = slices.Grow(p.runs, k)
	most, next := uint64(1)<<width-1, uint64(0)
	for i := 0; i < k && r.err == nil; i++ {
		at := r.at
		skip, length := r.uint("run"), r.uint("run length")
		missing, some := uint64(0), length&1 != 0
		if length >>= 1; some {
			missing = r.uint("run missing")
		}
		switch {
		case r.err != nil:
			return
		case i == 0 && skip != 0, next > most, skip > most-next, length > most-next-skip,
			some && (missing == 0 || missing > length-min(length, 1)): // the ends of a run did come
			r.at = at
			r.fail("run", ErrCorrupt)
			return
		}
		run := Run{First: next + skip, Last: next + skip + length, Count: length + 1 - missing}
		p.runs = append(p.runs, run)
		next = run.Last + 2
	}
}

// grow makes room for n items in all. The caller has bounded n.
func (l *keyed[K, V]) grow(n int) {
	l.items = slices.Grow(l.items, max(n-len(l.items), 0))
	if l.index == nil {
		l.index = make(map[K]int32, n)
	}
}

// reader reads the parts of a partial. After an error it reads nothing but zeros, and keeps the error.
type reader struct {
	b    []byte
	at   int
	base int64 // what times are relative to
	err  error
}

// PartialError says at which byte of an encoded partial something is wrong, and what.
type PartialError struct {
	Field  string
	Offset int
	Err    error // ErrTruncated, ErrVersion, ErrCorrupt or ErrLimit
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("partial window: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *PartialError) Unwrap() error { return e.Err }

func (r *reader) fail(field string, err error) {
	if r.err == nil {
		r.err = &PartialError{field, r.at, err}
	}
}

// bytes gives the next n bytes, or nil.
func (r *reader) bytes(field string, n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)-r.at) {
		r.fail(field, ErrTruncated)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *reader) byte(field string) byte {
	if b := r.bytes(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32(field string) uint32 {
	if b := r.bytes(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64(field string) uint64 {
	if b := r.bytes(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uint(field string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if !r.varint(field, n) {
		return 0
	}
	return v
}

func (r *reader) int(field string) int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.b[r.at:])
	if !r.varint(field, n) {
		return 0
	}
	return v
}

// varint takes a varint of n bytes, as package encoding/binary counts them. One that could be shorter was not written by
// AppendBinary.
func (r *reader) varint(field string, n int) bool {
	switch {
	case n > 1 && r.b[r.at+n-1] == 0:
		r.fail(field, ErrCorrupt)
	case n > 0:
		r.at += n
		return true
	case n == 0:
		r.fail(field, ErrTruncated)
	default:
		r.fail(field, ErrCorrupt)
	}
	return false
}

func (r *reader) time(field string) int64 { return r.base + r.int(field) }

// id reads a number of 32 bits.
func (r *reader) id(field string) uint32 {
	at := r.at
	v := r.uint(field)
	if v > math.MaxUint32 {
		r.at = at
		r.fail(field, ErrCorrupt)
		return 0
	}
	return uint32(v)
}

// flags reads a byte of which only the known bits may be set.
func (r *reader) flags(field string, known byte) byte {
	f := r.byte(field)
	if f&^known != 0 {
		r.at--
		r.fail(field, ErrCorrupt)
		return 0
	}
	return f
}

// count reads how many items follow: at most limit of them, and no more than can be there, each of size bytes or more.
func (r *reader) count(field string, limit, size int) int {
	at := r.at
	n := r.uint(field)
	switch {
	case r.err != nil:
		return 0
	case n > uint64(len(r.b)-r.at)/uint64(size):
		r.at = at
		r.fail(field, ErrTruncated)
		return 0
	case n > uint64(max(limit, 0)):
		r.at = at
		r.fail(field, ErrLimit)
		return 0
	}
	return int(n)
}

// items reads the number of items of a section. A section without any is not written.
func (r *reader) items(field string, limit, size int) int {
	n := r.count(field, limit, size)
	if n == 0 {
		r.fail(field, ErrCorrupt)
	}
	return n
}

// ordered fails unless an item, which begins at a place, is in order.
func (r *reader) ordered(field string, at int, ok bool) bool {
	if !ok && r.err == nil {
		r.at = at
		r.fail(field, ErrCorrupt)
	}
	return r.err == nil
}

func (r *reader) addr(field string) (a decode.Addr) {
	copy(a[:], r.bytes(field, len(a)))
	return a
}

func (r *reader) flow(field string) (k decode.FlowKey) {
	if b := r.bytes(field, flowBytes); b != nil {
		n := copy(k.Src[:], b)
		n += copy(k.Dst[:], b[n:])
		k.SrcPort, k.DstPort = binary.LittleEndian.Uint16(b[n:]), binary.LittleEndian.Uint16(b[n+2:])
		k.Proto, k.IPVersion = b[n+4], b[n+5]
	}
	return k
}

func (r *reader) place(field string) HopKey {
	k := HopKey{Node: r.id(field)}
	at := r.at
	n := r.uint(field)
	if n>>1 > math.MaxUint32 {
		r.at = at
		r.fail(field, ErrCorrupt)
		return HopKey{}
	}
	k.EgressIf, k.Other = uint32(n>>1), n&isOther != 0
	return k
}

// path appends a path to dst.
func (r *reader) path(field string, dst []HopKey) []HopKey {
	n := r.count(field, math.MaxInt, 2)
	dst = slices.Grow(dst, n)
	for ; n > 0 && r.err == nil; n-- {
		dst = append(dst, r.place(field))
	}
	return dst
}

// histogram adds a histogram to h.
func (r *reader) histogram(field string, h *logcode.Histogram) {
	if r.err != nil {
		return
	}
	n, err := h.MergeBytes(r.b[r.at:])
	r.at += n
	switch err {
	case nil:
	case logcode.ErrTruncated:
		r.fail(field, ErrTruncated)
	default:
		r.fail(field, ErrCorrupt)
	}
}
