package subject

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// Coder codes what detectors remember. Its numbers take eight bytes each.
type Coder struct {
	*state.Coder
	*Journal
	Version uint8
}

// Coded is a part of a state that a coder writes or reads.
type Coded interface{ Code(*Coder) }

// Code writes or reads the subjects of a table.
func (l *Table[K, S]) Code(c *Coder) {
	l.Order()
	n := len(l.List)
	Number(c, &n)
	for i := 0; i < n && c.OK(); i++ {
		if c.Reading() {
			l.List = append(l.List, &Entry[K, S]{})
		}
		s := l.List[i]
		l.codeKey(c, &s.Key)
		c.Check("order of keys", i == 0 || l.compare(l.List[i-1].Key, s.Key) < 0)
		Number(c, &s.Last)
		c.Check("window", s.Last <= c.Windows)
		l.codeState(c, &s.State)
		l.Index[s.Key] = s
	}
}

// Number is a whole number. One of type int is a count and never negative.
func Number[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, p *T) {
	v := uint64(*p)
	if state.Fixed(c.Coder, "number", &v); !c.Reading() {
		return
	}
	*p = T(v)
	_, count := any(*p).(int)
	c.Check("number", uint64(*p) == v && !(count && *p < 0))
}

// Float is a finite number.
func (c *Coder) Float(p *float64) { c.Float64("value", -math.MaxFloat64, math.MaxFloat64, p) }

// Text is a length and so many bytes.
func (c *Coder) Text(p *string) {
	b := []byte(*p)
	n := len(b)
	Number(c, &n)
	if c.Reading() && (n > c.Left() || !c.OK()) {
		c.Fail("text", state.ErrShort)
		return
	}
	if c.Reading() {
		b = make([]byte, n)
	}
	c.Bytes("text", b)
	*p = string(b)
}

// Address is an IP address.
func (c *Coder) Address(p *decode.Addr) { c.Addr("address", p) }

// Flow is the key of a flow.
func (c *Coder) Flow(p *decode.FlowKey) {
	c.Address(&p.Src)
	c.Address(&p.Dst)
	Number(c, &p.SrcPort)
	Number(c, &p.DstPort)
	Number(c, &p.Proto)
	Number(c, &p.IPVersion)
}

// Hop is the key of a hop.
func (c *Coder) Hop(p *inference.HopKey) {
	Number(c, &p.Node)
	Number(c, &p.EgressIf)
	c.Flag(&p.Other)
}

// Flag is 0 or 1.
func (c *Coder) Flag(p *bool) {
	var set uint8
	if *p {
		set = 1
	}
	Number(c, &set)
	c.Check("flag", set <= 1)
	*p = set == 1
}

// Exporter is the key of an exporter.
func (c *Coder) Exporter(p *inference.ExporterKey) {
	c.Address(&p.Addr)
	n := p.NodeNumber()
	Number(c, &n)
	c.Check("node", p.SetNodeNumber(n))
	Number(c, &p.HWID)
}

// Element is the text of an element.
func (c *Coder) Element(p *inference.Element) {
	text := p.String()
	c.Text(&text)
	if c.Reading() && c.OK() {
		e, err := inference.ParseElement(text)
		c.Check("element", err == nil && e.String() == text)
		if c.Version < 9 && e.Kind == inference.ExporterElement && e.Node == 0 {
			e.Nameless = true
		}
		*p = e
	}
}

// Kind is the name of a kind of findings.
func (c *Coder) Kind(p *inference.Kind) {
	text := p.String()
	c.Text(&text)
	if c.Reading() && c.OK() {
		var err error
		*p, err = inference.ParseKind(text)
		c.Check("kind", err == nil)
	}
}

// Finding is the open finding of a cause, if there is one.
func (c *Coder) Finding(p **inference.Finding) {
	f := *p
	if f == nil {
		f = &inference.Finding{}
	}
	Number(c, &f.ID)
	if f.ID == 0 || !c.OK() {
		return
	}
	c.Check("id of a finding", f.ID <= c.ID)
	c.Kind(&f.Kind)
	Number(c, &f.Severity)
	c.Check("severity", f.Severity <= inference.Critical)
	Number(c, &f.Start)
	Number(c, &f.Updated)
	if c.Version >= 3 {
		Number(c, &f.Cause)
		c.Check("cause of a finding", f.Cause <= c.ID)
		Number(c, &f.Evidence)
		c.Element(&f.Element)
		c.Flag(&f.Learning)
	}
	if c.Version >= 12 {
		c.Flag(&f.Resting)
	}
	Number(c, &f.Node)
	Number(c, &f.EgressIf)
	c.Flow(&f.Flow)
	if c.Version >= 11 {
		List(c, &f.Path, c.Hop)
	}
	c.Address(&f.Exporter)
	Number(c, &f.HWID)
	if c.Version >= 9 {
		c.Flag(&f.Nameless)
	} else {
		f.Nameless = f.Exporter != decode.Addr{} && f.Node == 0
	}
	Number(c, &f.Reason)
	if c.Version >= 3 {
		c.Text(&f.Statistic)
	}
	c.Float(&f.Value)
	c.Float(&f.Baseline)
	c.Text(&f.Text)
	if c.Reading() && c.OK() {
		*p = f
		c.Open = append(c.Open, f)
	}
}

// List is a number of things, one after the other.
func List[T any](c *Coder, p *[]T, each func(*T)) {
	n := len(*p)
	if Number(c, &n); c.Reading() && n > c.Left()/8 {
		c.Fail("list", state.ErrShort)
		n = 0
	}
	state.Repeat(c.Coder, n, p, func(item *T, _ *state.Coder) { each(item) })
}

// Copied is a finding that is kept beside the one that its detector has open.
func (c *Coder) Copied(f *inference.Finding) {
	open := len(c.Open)
	p := f
	if c.Reading() {
		p = nil
	}
	c.Finding(&p)
	if c.Reading() && c.OK() {
		c.Check("id of a finding", p != nil)
		if p == nil {
			return
		}
		*f = *p
		c.Open = c.Open[:open]
	}
	Number(c, &f.End)
}

// Part codes what another package remembers, behind its length.
func (c *Coder) Part(field string, code func(*state.Coder)) {
	if c.Reading() {
		n := 0
		Number(c, &n)
		c.Within(field, n, code)
		return
	}
	b := state.Append(nil, code)
	n := len(b)
	Number(c, &n)
	c.Bytes(field, b)
}
