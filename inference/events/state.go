package events

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// The state of a Detector as bytes, which only the version that wrote them reads:
//
//	state:     version<1b> windows<n> id<n> hops<n> watched<n> links<n> refused hops<n> drops<n> faults<n> { lifecycle }, in the order of detectors
//	lifecycle: subjects<n> { key last<n> state }, ordered by key
//	finding:   id<n>, 0 for none, and otherwise kind<text> severity<n> start<n> updated<n> cause<n> evidence<n> element
//	           learning<n> node<n> egress interface<n> flow exporter<16b> hardware id<n> without node<n> (from version 9)
//	           reason<n> statistic<text> value<f> baseline<f> text<text>
//	element:   its text, such as "node 7", empty for none
//	n:         8 bytes, little endian, two's complement
//	f:         the 8 bytes of a float64, little endian; no infinity, no NaN
//	text:      length<n> bytes
//
// What a lifecycle's keys and states consist of is said beside them. The version is stateVersion, beside the list of
// detectors.

// AppendState appends all that the detector remembers, without its settings. The bytes are for [Detector.ReadState] of the same
// version of this package alone.
func (d *Detector) AppendState(dst []byte) []byte {
	return state.Append(dst, d.journal.code)
}

// ReadState replaces all that the detector remembers with what [Detector.AppendState] wrote; the settings stay. From then
// on it goes on as the one that wrote would have. If b is no such state, which is a [*state.Error], the detector stays as it
// is. The memory that it takes is in proportion to the length of b, which is not kept.
func (d *Detector) ReadState(b []byte) error {
	fresh := New(d.journal.cfg)
	if err := state.Read("state of detectors", b, fresh.journal.code); err != nil {
		return err
	}
	*d = *fresh
	return nil
}

// coder codes what detectors remember. Its numbers take eight bytes each.
type coder struct {
	*state.Coder
	*journal
	version uint8
}

// coded is what a coder writes or reads.
type coded interface{ code(*coder) }

func (j *journal) code(sc *state.Coder) {
	c := &coder{sc, j, sc.Version(oldestVersion, stateVersion)}
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
		c.parts()
	}
	if c.Reading() {
		slices.SortFunc(c.open, func(a, b *inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
		distinct := len(slices.CompactFunc(slices.Clone(c.open), func(a, b *inference.Finding) bool { return a.ID == b.ID }))
		c.Check("ids of two findings", distinct == len(c.open))
	}
}

// parts codes what the detectors remember. Before version 6 there was none of the use of hops, before version 8 none of the counts of interfaces.
func (c *coder) parts() {
	var hops *lifecycle[inference.HopKey, hop]
	for _, s := range c.states {
		switch s := s.(type) {
		case *lifecycle[inference.HopKey, hop]:
			hops = s
		case *lifecycle[inference.HopKey, use]:
			if c.version < 6 {
				if c.OK() {
					uses{s}.takeOver(hops)
				}
				continue
			}
		case *lifecycle[countKey, counted]:
			if c.version < 8 {
				continue
			}
		}
		s.code(c)
	}
}

func (l *lifecycle[K, S]) code(c *coder) {
	l.order()
	n := len(l.list)
	number(c, &n)
	for i := 0; i < n && c.OK(); i++ {
		if c.Reading() {
			l.list = append(l.list, &subject[K, S]{})
		}
		s := l.list[i]
		l.codeKey(c, &s.key)
		c.Check("order of keys", i == 0 || l.compare(l.list[i-1].key, s.key) < 0)
		number(c, &s.last)
		c.Check("window", s.last <= c.windows)
		l.codeState(c, &s.state)
		l.index[s.key] = s
	}
}

// number is a whole number. One of type int is a count and never negative.
func number[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, p *T) {
	v := uint64(*p)
	if state.Fixed(c.Coder, "number", &v); !c.Reading() {
		return
	}
	*p = T(v)
	_, count := any(*p).(int)
	c.Check("number", uint64(*p) == v && !(count && *p < 0))
}

func (c *coder) float(p *float64) { c.Float64("value", -math.MaxFloat64, math.MaxFloat64, p) }

func (c *coder) text(p *string) {
	b := []byte(*p)
	n := len(b)
	number(c, &n)
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

func (c *coder) address(p *decode.Addr) { c.Addr("address", p) }

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
	c.Check("flag", set <= 1)
	*p = set == 1
}

func (c *coder) exporter(p *inference.ExporterKey) {
	c.address(&p.Addr)
	n := p.NodeNumber()
	number(c, &n)
	c.Check("node", p.SetNodeNumber(n))
	number(c, &p.HWID)
}

func (c *coder) element(p *inference.Element) {
	text := p.String()
	c.text(&text)
	if c.Reading() && c.OK() {
		e, err := inference.ParseElement(text)
		c.Check("element", err == nil && e.String() == text)
		if c.version < 9 && e.Kind == inference.ExporterElement && e.Node == 0 {
			e.Nameless = true
		}
		*p = e
	}
}

func (c *coder) kind(p *inference.Kind) {
	text := p.String()
	c.text(&text)
	if c.Reading() && c.OK() {
		var err error
		*p, err = inference.ParseKind(text)
		c.Check("kind", err == nil)
	}
}

// finding is the open finding of a cause, if there is one.
func (c *coder) finding(p **inference.Finding) {
	f := *p
	if f == nil {
		f = &inference.Finding{}
	}
	number(c, &f.ID)
	if f.ID == 0 || !c.OK() {
		return
	}
	c.Check("id of a finding", f.ID <= c.id)
	c.kind(&f.Kind)
	number(c, &f.Severity)
	c.Check("severity", f.Severity <= inference.Critical)
	number(c, &f.Start)
	number(c, &f.Updated)
	if c.version >= 3 {
		number(c, &f.Cause)
		c.Check("cause of a finding", f.Cause <= c.id)
		number(c, &f.Evidence)
		c.element(&f.Element)
		c.flag(&f.Learning)
	}
	if c.version >= 12 {
		c.flag(&f.Resting)
	}
	number(c, &f.Node)
	number(c, &f.EgressIf)
	c.flow(&f.Flow)
	if c.version >= 11 {
		list(c, &f.Path, c.hop)
	}
	c.address(&f.Exporter)
	number(c, &f.HWID)
	if c.version >= 9 {
		c.flag(&f.Nameless)
	} else {
		f.Nameless = f.Exporter != decode.Addr{} && f.Node == 0
	}
	number(c, &f.Reason)
	if c.version >= 3 {
		c.text(&f.Statistic)
	}
	c.float(&f.Value)
	c.float(&f.Baseline)
	c.text(&f.Text)
	if c.Reading() && c.OK() {
		*p = f
		c.open = append(c.open, f)
	}
}
