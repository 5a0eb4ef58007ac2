package ipfix

import (
	"math"
	"net/netip"

	"github.com/hopscope/hopscope/decode"
)

// Kind is the subject of a template's records.
type Kind uint8

// The kinds of template.
const (
	Other     Kind = iota // nothing that is known here
	Settings              // options: names of interfaces, sampling rates
	Exception             // Juniper: a packet that was dropped, or a sample
	Delay                 // delay of a flow's packets on their way to the node
	Sample                // a packet of a flow
	Flow                  // packets of a flow
)

// Slot is a value that is looked for in records, by any of the elements that hold it.
type Slot uint8

// The slots.
const (
	Octets Slot = iota
	Packets
	Proto
	SrcPort
	DstPort
	Src4
	Dst4
	Src6
	Dst6
	Ingress // ifIndex
	Egress
	Sampler  // samplerId or selectorId: whose rate is meant
	Interval // samplingInterval or samplerRandomInterval: one of so many packets
	PacketInterval
	PacketSpace
	Name
	Description
	FrameSize
	Frame      // from its MAC addresses on
	IPPacket   // from its IP header on
	OfTemplate // templateId: the template whose records an options record is about
	MeanDelay
	LeastDelay
	MostDelay
	SumDelay
	StartSeconds // since 1970
	EndSeconds
	StartMillis // since 1970
	EndMillis
	StartUptime // ms since the exporter began
	EndUptime
	numSlots
)

// elements are the slots of IANA's elements. Of several for one slot the first in a record counts.
var elements = map[uint16]Slot{
	1: Octets, 2: Packets, 4: Proto, 7: SrcPort, 180: SrcPort, 182: SrcPort, 11: DstPort, 181: DstPort, 183: DstPort,
	8: Src4, 12: Dst4, 27: Src6, 28: Dst6, 10: Ingress, 252: Ingress, 14: Egress, 253: Egress, 48: Sampler, 302: Sampler, 34: Interval, 50: Interval,
	305: PacketInterval, 306: PacketSpace, 82: Name, 83: Description, 145: OfTemplate, 312: FrameSize, 315: Frame, 104: Frame, 313: IPPacket,
	150: StartSeconds, 151: EndSeconds, 152: StartMillis, 153: EndMillis, 22: StartUptime, 21: EndUptime,
}

// The numbers of enterprises.
const (
	Huawei  = 2011
	Juniper = 2636
)

// Numbering chooses which elements without an enterprise hold delays, where numberings collide.
type Numbering uint8

// The numberings of delays. All of them also read those of RFC 9951 (530 to 533) and of Huawei, which collide with
// nothing.
const (
	Standard Numbering = iota // and pmacct's own, 600 to 603, which IANA has given to nothing
	Fluvia                    // 521 to 528, which IANA has given to TCP options since
	Strict                    // no other
)

// Options choose the interpretation of templates.
type Options struct {
	Delays Numbering
	Rates  []Rate // by exporter, if its records lack it
}

// Rate is the sampling rate of the exporters of a prefix.
type Rate struct {
	Prefix netip.Prefix
	Rate   uint32
}

// rate is that of the longest prefix that holds an address, 0 without one.
func (o *Options) rate(a decode.Addr) (rate uint32) {
	addr, bits := a.Netip().Unmap(), -1
	for _, r := range o.Rates {
		if r.Prefix.Contains(addr) && r.Prefix.Bits() > bits {
			rate, bits = r.Rate, r.Prefix.Bits()
		}
	}
	return rate
}

// delaySlot returns the slot of a delay, and the unit's nanoseconds.
func delaySlot(e *decode.Element, o *Options) (s Slot, ns uint32, ok bool) {
	const us = 1000
	order := [4]Slot{MeanDelay, LeastDelay, MostDelay, SumDelay}
	switch i := e.ID - 521; {
	case e.PEN == 0 && e.ID >= 530 && e.ID <= 533:
		return order[e.ID-530], us, true
	case e.PEN == 0 && o.Delays == Standard && e.ID >= 600 && e.ID <= 603:
		return order[e.ID-600], us, true
	case e.PEN == Huawei && i <= 6 && i%2 == 0:
		return order[i/2], us, true
	case e.PEN == 0 && o.Delays == Fluvia && i <= 7:
		return order[i/2], 1 + (us-1)*uint32(1-i%2), true
	}
	return 0, 0, false
}

// View holds the offsets of the values that are looked for in the records of a template.
type View struct {
	Kind    Kind
	at      [numSlots]int16 // +1; 0 where there is none
	delayNS uint32          // nanoseconds in a unit of the delays
	timed   bool            // they have a time of a millisecond or better
	juniper []int16         // the elements 137 of Juniper, in order
}

// At returns the element that holds a slot.
func (v *View) At(s Slot) (i int, ok bool) { return int(v.at[s]) - 1, v.at[s] != 0 }

func (v *View) set(s Slot, i int) {
	if v.at[s] == 0 {
		v.at[s] = int16(i + 1)
	}
}

func (v *View) has(list ...Slot) bool {
	for _, s := range list {
		if v.at[s] != 0 {
			return true
		}
	}
	return false
}

// viewOf finds the known elements of a template.
func viewOf(t *decode.Template, o *Options) (v View) {
	for i := range t.Fields {
		e := &t.Fields[i]
		if i < t.Scopes && t.Version == V9 {
			if e.ID == 2 { // the scope "interface"
				v.set(Ingress, i)
			}
			continue
		}
		if e.PEN == Juniper && e.ID == 137 {
			v.juniper = append(v.juniper, int16(i))
		}
		if s, ns, ok := delaySlot(e, o); ok && (v.delayNS == 0 || v.delayNS == ns) {
			v.set(s, i)
			v.delayNS = ns
		}
		if s, ok := elements[e.ID]; ok && e.PEN == 0 {
			v.set(s, i)
		}
		v.timed = v.timed || e.PEN == 0 && (e.ID == 21 || e.ID == 22 || e.ID >= 152 && e.ID <= 157 || e.ID >= 323 && e.ID <= 325)
	}
	switch {
	case t.Scopes > 0:
		v.Kind = Settings
	case len(v.juniper) > 0:
		v.Kind = Exception
	case v.has(MeanDelay, LeastDelay, MostDelay, SumDelay):
		v.Kind = Delay
	case v.has(Frame, IPPacket):
		v.Kind = Sample
	case v.has(Src4) && v.has(Dst4) || v.has(Src6) && v.has(Dst6):
		v.Kind = Flow
	}
	return v
}

// Number returns the value of a slot.
func (r *Records) Number(s Slot) (v uint64, ok bool) {
	i, ok := r.t.View.At(s)
	if !ok {
		return 0, false
	}
	return r.Uint(i)
}

// Bytes returns the bytes of a slot, nil where there are none, and where they begin in the data.
func (r *Records) Bytes(s Slot) (b []byte, at int) {
	i, ok := r.t.View.At(s)
	if !ok {
		return nil, 0
	}
	return r.Value(i), r.Offset(i)
}

// Delays returns the delays of the record's packets since the node that inserted the header, in ns, by the clocks of
// both nodes. Packets is their number, 0 if the record lacks it. A mean follows from a sum. It returns false if there
// is none. Left reports whether values of the record are left out. Such values are those of no packets, unset ones,
// those above [decode.MostPathDelay], and those that contradict each other.
func (r *Records) Delays() (d decode.PathDelay, left, ok bool) {
	const mean, least, most, sum = decode.DelayMean, decode.DelayMin, decode.DelayMax, decode.DelaySum
	packets, counted := r.Number(Packets)
	d.Packets = packets
	unit := uint64(r.t.View.delayNS)
	get := func(s Slot, to *uint64, has decode.DelayField, of uint64) {
		i, there := r.t.View.At(s)
		if !there {
			return
		}
		v, number := r.Uint(i)
		width := 8 * min(len(r.Value(i)), 8)
		unset := v == math.MaxUint64>>(64-width)               // all ones: not set, or saturated
		back := has != sum && width >= 32 && v>>(width-1) != 0 // shorter values were cut because they fit
		if !number || unset || back || v/of > decode.MostPathDelay/unit || counted && packets == 0 {
			left = true
			return
		}
		*to = v * unit
		d.Has |= has
	}
	get(MeanDelay, &d.Mean, mean, 1)
	get(LeastDelay, &d.Min, least, 1)
	get(MostDelay, &d.Max, most, 1)
	get(SumDelay, &d.Sum, sum, max(packets, 1))
	drop := func(has decode.DelayField, out bool) {
		if d.Has&has != 0 && out {
			d.Has &^= has
			left = true
		}
	}
	above := func(v uint64) bool { return d.Has&most != 0 && v > d.Max+unit } // values are rounded
	below := func(v uint64) bool { return d.Has&least != 0 && v+unit < d.Min }
	drop(most, d.Max == 0 && d.Mean|d.Min > 0) // not set
	drop(mean, d.Mean == 0 && below(0))
	drop(mean|least|most, d.Has&mean != 0 && (below(d.Mean) || above(d.Mean)) || d.Has&(least|most) == least|most && d.Min > d.Max)
	if d.Has&sum != 0 && packets > 0 {
		of := d.Sum / packets
		if drop(sum, below(of) || above(of)); d.Has&(mean|sum) == sum {
			d.Mean = of
			d.Has |= mean
		}
	}
	return d, left, d.Has != 0
}

// Times returns when the first and the last packet of the record passed, in ns since 1970 by the exporter's clock.
// Both are 0 if the record lacks them. So they are if the end is before the start, or more than a minute after the
// message. Times relative to the exporter's start are resolved for NetFlow 9 alone, whose header has the uptime.
func (r *Records) Times(m *Message) (start, end int64) {
	at := int64(m.Time) * 1e9
	get := func(a, b Slot, unit, origin int64) bool {
		from, ok := r.Number(a)
		to, ok2 := r.Number(b)
		if !ok || !ok2 || from == 0 && origin == 0 || max(from, to) > 1<<62/uint64(unit) {
			return false
		}
		if start, end = origin+int64(from)*unit, origin+int64(to)*unit; end < start || end > at+60e9 || start <= 0 {
			start, end = 0, 0
			return false
		}
		return true
	}
	if get(StartMillis, EndMillis, 1e6, 0) || get(StartSeconds, EndSeconds, 1e9, 0) {
		return start, end
	}
	if m.Version == V9 && m.Uptime != 0 {
		get(StartUptime, EndUptime, 1e6, at-int64(m.Uptime)*1e6)
	}
	return start, end
}

// JuniperException holds the values of the elements 137 of a record. A value that is not there is 0, which for Code
// is a packet that was forwarded.
type JuniperException struct {
	Class      uint32 // forwarding class and drop priority, packed
	Code       uint32 // exception code, whose meaning is the platform's; 0: forwarded
	HasCode    bool
	NextHop    uint32
	Egress     uint32 // interfaces by the index of Junos, which is not that of SNMP
	Underlying uint32
	Ingress    uint32
}

// Exception reads the elements 137 of Juniper. The upper 6 bits of each value are its kind.
func (r *Records) Exception() (x JuniperException) {
	for _, i := range r.t.View.juniper {
		v, ok := r.Uint(int(i))
		n := len(r.Value(int(i)))
		if !ok || n > 4 {
			continue
		}
		rest := uint32(v & (1<<(8*n-6) - 1))
		switch v >> (8*n - 6) {
		case 1:
			x.Class = rest
		case 2:
			if !x.HasCode {
				x.Code, x.HasCode = rest, true
			}
		case 3:
			x.NextHop = rest
		case 4:
			x.Egress = rest
		case 5:
			x.Underlying = rest
		case 6:
			x.Ingress = rest
		}
	}
	return x
}

// Rate is the sampling rate in the record, one of rate packets, and its sampler. It is 0 if the record has none. An
// options record that names no sampler can name a template: [SamplerOf].
func (r *Records) Rate() (rate uint32, sampler uint64) {
	sampler, _ = r.Number(Sampler)
	if id, ok := r.Number(OfTemplate); ok && sampler == 0 {
		sampler = SamplerOf(uint16(id))
	}
	if v, ok := r.Number(Interval); ok && v > 0 {
		return uint32(min(v, 1<<32-1)), sampler
	}
	if n, ok := r.Number(PacketInterval); ok && n > 0 {
		space, _ := r.Number(PacketSpace)
		return uint32(min(max((min(n, 1<<32)+min(space, 1<<32))/n, 1), 1<<32-1)), sampler
	}
	return 0, sampler
}

// SamplerOf stands for the sampler of all records of a template.
func SamplerOf(template uint16) uint64 { return 1<<63 | uint64(template) }
