package demux

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
)

// Route is the profile for the exporters of one prefix.
type Route struct {
	Prefix  netip.Prefix // IPv4 or IPv6; host bits are ignored
	Profile Profile
}

// Router is a Decoder that chooses the profile by the source address of a packet. It takes the profile adopted for
// the address, else that of the longest prefix, or a fallback. Its reports are for statistics: values known to be
// wrong are left out ([Lie]). It is for one goroutine.
type Router struct {
	fallback *Decoder
	plain    bool       // there is no other
	adopted  *Adopted   // nil without any
	own      []*Decoder // of the adopted profiles, made when they are needed
	routes   []route    // longest prefix first
	// recent remembers the choice for addresses seen lately, so that a packet of a known exporter costs one
	// comparison, for any number of routes.
	recent [recentSlots]struct {
		addr decode.Addr
		dec  *Decoder
	}
	outer    packet.Packet
	ipfix    *ipfix.Store // of all decoders, if shared
	shared   bool
	make     func(Profile) *Decoder
	port     uint16          // source port of the datagram that is read next
	only     Kind            // what alone may come in at the port that the datagram came to
	kinds    map[uint16]Kind // of the ports that frames go to; where it has none, anything
	lastPort uint16          // such a port of the last frame; 0 without
}

// From sets the source port of the following datagrams, which is part of the key of IPFIX and NetFlow 9 templates. It
// is 0 if unknown.
func (rt *Router) From(port uint16) { rt.port = port }

// Only sets the only kind that the port of the following datagrams of [Router.Lazy] accepts.
func (rt *Router) Only(k Kind) { rt.only = k }

// Ports sets the only kind that each destination port of captured frames accepts, at any address.
func (rt *Router) Ports(kinds map[uint16]Kind) *Router {
	rt.kinds = kinds
	return rt
}

// LastPort returns the destination port of the last frame, and the only kind that it accepts, if there is one.
func (rt *Router) LastPort() (port uint16, k Kind) {
	if rt.lastPort == 0 {
		return 0, Anything
	}
	return rt.lastPort, rt.kinds[rt.lastPort]
}

// kind is the only kind that the destination port of the last frame accepts.
func (rt *Router) kind() Kind {
	p := &rt.outer
	rt.lastPort = 0
	if len(rt.kinds) == 0 || p.Proto != packet.ProtoUDP || !p.HasPorts || p.Fragment {
		return Anything
	}
	k := rt.kinds[p.DstPort()]
	if k != Anything {
		rt.lastPort = p.DstPort()
	}
	return k
}

const recentSlots = 256 // a power of two

type route struct {
	hi, lo         uint64 // the prefix
	maskHi, maskLo uint64
	bits           int
	dec            *Decoder
}

// NewRouter makes a router. Of two routes with the same prefix the first counts.
func NewRouter(fallback Profile, routes []Route) *Router {
	return newRouter(newCorrecting, fallback, routes)
}

// NewVerbatim makes a router for display, whose reports are as on the wire, like those of a [Decoder].
func NewVerbatim(fallback Profile, routes []Route) *Router { return newRouter(New, fallback, routes) }

func newRouter(decoder func(Profile) *Decoder, fallback Profile, routes []Route) *Router {
	rt := &Router{fallback: decoder(fallback), plain: len(routes) == 0, make: decoder}
	for _, r := range routes {
		n := r.Prefix.Bits()
		if r.Prefix.Addr().Is4() {
			n += 96
		}
		x := route{bits: n, dec: decoder(r.Profile), maskHi: mask(n), maskLo: mask(n - 64)}
		hi, lo := halves(decode.AddrFrom(r.Prefix.Addr()))
		x.hi, x.lo = hi&x.maskHi, lo&x.maskLo
		rt.routes = append(rt.routes, x)
	}
	slices.SortStableFunc(rt.routes, func(a, b route) int { return cmp.Compare(b.bits, a.bits) })
	return rt
}

// mask has n leading ones, for any n.
func mask(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	}
	return ^uint64(0) << (64 - n)
}

func halves(a decode.Addr) (hi, lo uint64) {
	return binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
}

// Frame is [Decoder.Frame] of the decoder for the frame's source address. A frame without an IP header goes to the
// fallback.
func (rt *Router) Frame(b *decode.Batch, link uint16, data []byte, length int, time int64) (n int) {
	rt.outer.Frame(link, data, length)
	dec := rt.fallback
	if rt.outer.IP != 0 {
		dec = rt.pick(rt.outer.Src(data))
	}
	if k := rt.kind(); k != Anything {
		n = dec.packetOnly(k, b, &rt.outer, data, time)
	} else if n = dec.packet(b, &rt.outer, data, time); dec.special {
		dec.forget(b, n)
	}
	if len(data) < length {
		for _, r := range b.Reports[len(b.Reports)-n:] {
			short(r)
		}
	}
	return n
}

// short sets RemarkShort in a report of a partly captured frame, if its content may be in the missing part.
func short(r *decode.Report) {
	report := r.Format == decode.TelemetryReport
	if r.Err.Reason == 0 && (r.Flags&decode.Truncated != 0 || r.HeaderCut || report && (r.Has&(decode.HasFlow|decode.HasInner) == 0 || r.Flags&decode.Tracked != 0 && r.INT == 0)) {
		r.Remarks |= decode.RemarkShort
	}
}

// Datagram is [Decoder.Datagram] of the decoder for src.
func (rt *Router) Datagram(b *decode.Batch, src decode.Addr, payload []byte, time int64) (n int) {
	dec := rt.pick(src)
	dec.port = rt.port
	return dec.Datagram(b, src, payload, time)
}

// DatagramCut is [Decoder.DatagramCut] of the decoder for src.
func (rt *Router) DatagramCut(b *decode.Batch, src decode.Addr, payload []byte, length int, time int64) (n int) {
	dec := rt.pick(src)
	dec.port = rt.port
	return dec.DatagramCut(b, src, payload, length, time)
}

// Lazy reads the payload of a datagram as [Router.DatagramCut] does and appends its lazy reports to b. A report that
// agrees with a shape is in the short form.
func (rt *Router) Lazy(b *decode.LazyBatch, src decode.Addr, payload []byte, length int, time int64) (n int) {
	dec := rt.fallback
	if !rt.plain {
		dec = rt.pick(src)
	}
	dec.port = rt.port
	if rt.only != Anything {
		return dec.lazyOnly(rt.only, b, &src, payload, length, time)
	}
	return dec.lazy(b, &src, payload, length, time)
}

// LazyFrame is [Router.Frame] for lazy reports.
func (rt *Router) LazyFrame(b *decode.LazyBatch, link uint16, data []byte, length int, time int64) (n int) {
	rt.outer.Frame(link, data, length)
	dec := rt.fallback
	if rt.outer.IP != 0 {
		dec = rt.pick(rt.outer.Src(data))
	}
	if k := rt.kind(); k != Anything {
		general := dec.shapes.memory()
		n = dec.packetOnly(k, general, &rt.outer, data, time)
		b.AppendBatch(general)
		if at := rt.outer.L4 + packet.UDPLen; n > 0 && at <= len(data) {
			b.SetSum(n, decode.Sum(data[at:min(max(rt.outer.UDPEnd(data), at), len(data))]))
		}
		return n
	}
	n = dec.lazyFrame(b, &rt.outer, data, time)
	if len(data) < length {
		for _, x := range b.List[len(b.List)-n:] {
			if x.Shape != nil && !x.Shape.Common.Postcard() {
				continue // all of it is there
			}
			x.Generalize()
			short(x.Report())
		}
	}
	return n
}

// Blind reports whether the capture of the last frame of LazyFrame ends within the frame's own headers, so that
// telemetry may have followed. Data and length are those of the frame.
func (rt *Router) Blind(data []byte, length int) bool {
	p := &rt.outer
	switch {
	case len(data) >= length:
		return false
	case p.IP == 0:
		return p.EtherType == 0 || p.EtherType == packet.EtherIPv4 || p.EtherType == packet.EtherIPv6
	}
	return !p.HasPorts && !p.Fragment && p.Proto == packet.ProtoUDP
}

func (rt *Router) pick(src decode.Addr) *Decoder {
	if rt.plain {
		return rt.fallback
	}
	hi, lo := halves(src)
	s := &rt.recent[(hi^lo)*0x9e3779b97f4a7c15>>(64-8)]
	if s.dec == nil || s.addr != src {
		s.addr, s.dec = src, rt.find(src, hi, lo)
	}
	return s.dec
}

func (rt *Router) find(src decode.Addr, hi, lo uint64) *Decoder {
	if rt.adopted != nil {
		if i, ok := rt.adopted.Of[src]; ok && i < len(rt.own) {
			if rt.own[i] == nil {
				rt.own[i] = rt.make(rt.adopted.Profiles[i])
				if rt.shared {
					share(rt.own[i], rt.ipfix)
				}
			}
			return rt.own[i]
		}
	}
	return rt.search(hi, lo)
}

// Adopted are profiles that single addresses turned out to have. Routers of several goroutines share it, so that it
// may not be changed any more.
type Adopted struct {
	Profiles []Profile
	Of       map[decode.Addr]int // index into Profiles
}

// Adopt sets the adopted profiles of addresses, which replace those of an earlier call.
func (rt *Router) Adopt(a *Adopted) {
	rt.adopted, rt.own = a, nil
	if a != nil {
		rt.own = make([]*Decoder, len(a.Profiles))
	}
	rt.plain = len(rt.routes) == 0 && a == nil
	clear(rt.recent[:])
}

// Profile is the profile that reports from src are read with. It is not to be changed.
func (rt *Router) Profile(src decode.Addr) *Profile { return &rt.pick(src).profile }

func (rt *Router) search(hi, lo uint64) *Decoder {
	for i := range rt.routes {
		if r := &rt.routes[i]; hi&r.maskHi == r.hi && lo&r.maskLo == r.lo {
			return r.dec
		}
	}
	return rt.fallback
}
