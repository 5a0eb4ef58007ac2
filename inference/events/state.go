package events

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// The state of a Detector as bytes, which only the version that wrote them reads:
//
//	state:     version<1b> windows<n> id<n> hops<n> watched<n> links<n> refused hops<n> drops<n> faults<n> { lifecycle }, in the order of detectors
//	lifecycle: subjects<n> { key last<n> state }, ordered by key
//	finding:   id<n>, 0 for none, and otherwise kind<text> severity<n> start<n> updated<n> cause<n> evidence<n> element
//	           learning<n> node<n> egress interface<n> flow exporter<16b> hardware id<n> reason<n> statistic<text> value<f>
//	           baseline<f> text<text>
//	element:   its text, such as "node 7", empty for none
//	n:         8 bytes, little endian, two's complement
//	f:         the 8 bytes of a float64, little endian; no infinity, no NaN
//	text:      length<n> bytes
//
// What a lifecycle's keys and states consist of is said beside them. The version is stateVersion, beside the list of
// detectors.

// What is wrong with a state, for errors.Is.
var (
	ErrVersion = errors.New("written by another version")
	ErrState   = errors.New("no state of detectors")
)

// StateError says why bytes are no state that can be read here.
type StateError struct {
	Offset int    // of what is wrong, in bytes
	Reason string // in words
	Err    error  // ErrVersion or ErrState
}

// Error gives, for example, "events: state at byte 0: it has version 7, and version 1 is read here".
func (e *StateError) Error() string {
	return fmt.Sprintf("events: state at byte %d: %s", e.Offset, e.Reason)
}

// Unwrap gives ErrVersion or ErrState.
func (e *StateError) Unwrap() error { return e.Err }

// AppendState appends all that the detector remembers, without its settings. The bytes are for [Detector.ReadState] of
// the same version of this package and nobody else.
func (d *Detector) AppendState(dst []byte) []byte {
	c := &coder{journal: d.journal, b: append(dst, stateVersion), version: stateVersion}
	c.all()
	return c.b
}

// ReadState replaces all that the detector remembers with what [Detector.AppendState] wrote; the settings stay. From then
// on it goes on as the one that wrote would have. If b is no such state, which is a [StateError], the detector stays as it
// is. The memory that it takes is in proportion to the length of b, which is not kept.
func (d *Detector) ReadState(b []byte) error {
	if len(b) == 0 {
		return &StateError{0, "there are no bytes", ErrState}
	}
	if v := b[0]; v < oldestVersion || v > stateVersion {
		return &StateError{0, fmt.Sprintf("it has version %d, and versions %d to %d are read here", v, oldestVersion, stateVersion), ErrVersion}
	}
	fresh := New(d.journal.cfg)
	c := &coder{journal: fresh.journal, b: b, at: 1, version: b[0], reading: true}
	c.all()
	c.last = c.at
	c.check(c.at == len(b), "more bytes than the state has")
	if c.err != nil {
		return c.err
	}
	*d = *fresh
	return nil
}

// coder writes the state of a Detector or reads it, so that what is saved is listed once for both. The first error
// ends the reading: everything after it stays zero.
type coder struct {
	*journal
	b       []byte // what was written, or what is to be read
	at      int    // how much of it was read
	last    int    // where the last thing that was read begins
	version uint8
	reading bool
	err     error // a *StateError
}

// state is what writes itself to a coder, or reads itself from one.
type state interface{ code(*coder) }

func (c *coder) all() {
	number(c, &c.windows)
	number(c, &c.id)
	number(c, &c.stats.Hops)
	if c.version >= 3 {
		number(c, &c.stats.Watched)
		number(c, &c.stats.Links)
	}
	number(c, &c.stats.HopsRefused)
	number(c, &c.stats.DropsRefused)
	number(c, &c.stats.FaultsRefused)
	if c.version == 2 {
		c.version2()
	} else {
		for _, s := range c.states {
			s.code(c)
		}
	}
	if c.reading {
		slices.SortFunc(c.open, func(a, b *inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
		distinct := len(slices.CompactFunc(slices.Clone(c.open), func(a, b *inference.Finding) bool { return a.ID == b.ID }))
		c.check(distinct == len(c.open), "two findings have the same id")
	}
}

func (l *lifecycle[K, S]) code(c *coder) {
	l.order()
	n := len(l.list)
	number(c, &n)
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			l.list = append(l.list, &subject[K, S]{})
		}
		s := l.list[i]
		l.codeKey(c, &s.key)
		c.check(i == 0 || l.compare(l.list[i-1].key, s.key) < 0, "keys are not in order")
		number(c, &s.last)
		c.check(s.last <= c.windows, "something was seen in a window that has not come")
		l.codeState(c, &s.state)
		l.index[s.key] = s
	}
}

// check ends the reading with an error if what was read last is not as it has to be.
func (c *coder) check(ok bool, reason string) {
	if c.reading && !ok && c.err == nil {
		c.err = &StateError{c.last, reason, ErrState}
	}
}

// next gives the next n bytes to read, none if there are not as many.
func (c *coder) next(n int) []byte {
	c.last = c.at
	c.check(n <= len(c.b)-c.at, "it ends too early")
	if c.err != nil {
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

// number is a whole number. One of type int is a count and never negative.
func number[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, p *T) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, uint64(*p))
		return
	}
	b := c.next(8)
	if b == nil {
		return
	}
	v := binary.LittleEndian.Uint64(b)
	*p = T(v)
	_, count := any(*p).(int)
	c.check(uint64(*p) == v && !(count && *p < 0), "a number is out of range")
}

func (c *coder) float(p *float64) {
	bits := math.Float64bits(*p)
	number(c, &bits)
	*p = math.Float64frombits(bits)
	c.check(!math.IsNaN(*p) && !math.IsInf(*p, 0), "a value is no number")
}

func (c *coder) floats(p *[]float64) {
	n := len(*p)
	number(c, &n)
	if c.reading {
		c.check(n <= (len(c.b)-c.at)/8, "it ends too early")
		if c.err != nil {
			return
		}
		*p = make([]float64, n)
	}
	for i := range *p {
		c.float(&(*p)[i])
	}
}

func (c *coder) text(p *string) {
	n := len(*p)
	number(c, &n)
	if c.reading {
		*p = string(c.next(n))
	} else {
		c.b = append(c.b, *p...)
	}
}

func (c *coder) address(p *decode.Addr) {
	if c.reading {
		copy(p[:], c.next(len(p)))
	} else {
		c.b = append(c.b, p[:]...)
	}
}

func (c *coder) flow(p *decode.FlowKey) {
	c.address(&p.Src)
	c.address(&p.Dst)
	number(c, &p.SrcPort)
	number(c, &p.DstPort)
	number(c, &p.Proto)
	number(c, &p.IPVersion)
}

func (c *coder) hop(p *inference.HopKey) {
	number(c, &p.Node)
	number(c, &p.EgressIf)
	c.flag(&p.Other)
}

func (c *coder) flag(p *bool) {
	var set uint8
	if *p {
		set = 1
	}
	number(c, &set)
	c.check(set <= 1, "a flag is neither 0 nor 1")
	*p = set == 1
}

func (c *coder) exporter(p *inference.ExporterKey) {
	c.address(&p.Addr)
	number(c, &p.Node)
	number(c, &p.HWID)
}

func (c *coder) element(p *inference.Element) {
	text := p.String()
	c.text(&text)
	if c.reading && c.err == nil {
		e, err := inference.ParseElement(text)
		c.check(err == nil && e.String() == text, "an element that is not known")
		*p = e
	}
}

func (c *coder) kind(p *inference.Kind) {
	text := p.String()
	c.text(&text)
	if c.reading && c.err == nil {
		var err error
		*p, err = inference.ParseKind(text)
		c.check(err == nil, "a finding of a kind that is not known")
	}
}

// finding is the open finding of a cause, if there is one.
func (c *coder) finding(p **inference.Finding) {
	f := *p
	if f == nil {
		f = &inference.Finding{}
	}
	number(c, &f.ID)
	if f.ID == 0 || c.err != nil {
		return
	}
	c.check(f.ID <= c.id, "a finding has an id that has not been given")
	c.kind(&f.Kind)
	number(c, &f.Severity)
	c.check(f.Severity <= inference.Critical, "a severity that is not known")
	number(c, &f.Start)
	number(c, &f.Updated)
	if c.version >= 3 {
		number(c, &f.Cause)
		c.check(f.Cause <= c.id, "a finding has a cause that has not been given an id")
		number(c, &f.Evidence)
		c.element(&f.Element)
		c.flag(&f.Learning)
	}
	number(c, &f.Node)
	number(c, &f.EgressIf)
	c.flow(&f.Flow)
	c.address(&f.Exporter)
	number(c, &f.HWID)
	number(c, &f.Reason)
	if c.version >= 3 {
		c.text(&f.Statistic)
	}
	c.float(&f.Value)
	c.float(&f.Baseline)
	c.text(&f.Text)
	if c.reading && c.err == nil {
		*p = f
		c.open = append(c.open, f)
	}
}
