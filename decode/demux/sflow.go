package demux

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
)

// sflowState is a decoder's state of sFlow agents, because the counters in samples are sums since a device began.
type sflowState struct {
	reader  sflow.Reader
	header  sflow.Datagram
	sample  sflow.Sample
	packet  packet.Packet
	sources map[sflowSource]*sflowLast
	whys    map[sflowReason][]string

	missing, dropped atomic.Uint64

	mu      sync.Mutex
	learned []SFlowPort
	ports   int // that were learned in all
}

// SFlowPort is an agent's description of one of its interfaces, or of one of the reasons for which it drops packets.
type SFlowPort struct {
	Node   uint32
	Agent  decode.Addr
	Index  uint32
	Name   string // empty if it has none
	Speed  uint64 // bit/s
	Reason uint8
	Why    string // the device's name of the reason; empty for an interface
}

// maxPorts bounds how many interfaces are reported.
const maxPorts = 1 << 14

// Learned returns the new and the changed properties of interfaces that agents reported since the last call. Any
// goroutine may call it.
func (rt *Router) Learned() (list []SFlowPort) {
	drain := func(d *Decoder) {
		if d != nil && d.sflow != nil {
			d.sflow.mu.Lock()
			defer d.sflow.mu.Unlock()
			list = append(list, d.sflow.learned...)
			d.sflow.learned = nil
		}
	}
	drain(rt.fallback)
	for i := range rt.routes {
		drain(rt.routes[i].dec)
	}
	return list
}

// learn records a sample's properties of an interface for Learned.
func (x *sflowState) learn(l *sflowLast, node uint32, agent *decode.Addr) {
	s := &x.sample
	name := s.PortName
	if s.Has&sflow.HasPortName == 0 {
		name = nil
	}
	if l == nil || l.speed == s.Interface.Speed && l.name == string(name) || l.speed == 0 && s.Interface.Speed == 0 && len(name) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ports++; x.ports > maxPorts {
		return
	}
	l.speed, l.name = s.Interface.Speed, string(name)
	x.learned = append(x.learned, SFlowPort{Node: node, Agent: *agent, Index: s.Interface.Index, Name: l.name, Speed: l.speed})
}

// sflowReason is a reason for which a node drops packets.
type sflowReason struct {
	node   uint32
	reason uint8
}

// Bounds on the names of reasons that are remembered: in all, and of one reason of a node.
const (
	maxReasons   = 1 << 12
	maxOneReason = 4
)

// discarded returns the reason of a discarded packet, and records the device's name of it for Learned.
func (x *sflowState) discarded(node uint32, agent *decode.Addr, reason uint32) uint8 {
	why := x.sample.Why()
	reason = sflow.BetterReason(reason, why)
	code := sflow.ReasonCode(reason)
	if len(why) == 0 {
		return code
	}
	k := sflowReason{node, code}
	list := x.whys[k]
	for _, known := range list {
		if known == string(why) {
			return code
		}
	}
	if len(list) == maxOneReason || list == nil && len(x.whys) >= maxReasons {
		return code
	}
	list = append(list, string(why))
	x.whys[k] = list
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ports++; x.ports <= maxPorts {
		x.learned = append(x.learned, SFlowPort{Node: node, Agent: *agent, Reason: code, Why: reasonText(code, list)})
	}
	return code
}

// reasonText is the text of a reason for which a device has names of its own.
func reasonText(code uint8, names []string) string {
	text := "sFlow: " + strings.Join(names, ", ")
	if len(names) == maxOneReason {
		text = "sFlow: " + strings.Join(names[:maxOneReason-1], ", ") + " and others"
	}
	if code != sflow.ReasonCode(sflow.Unknown) {
		text = "sFlow: " + sflowReasons[code] + ":" + strings.TrimPrefix(text, "sFlow:")
	}
	return text
}

// maxSources bounds the sources of samples that are remembered.
const maxSources = 1 << 16

type sflowSource struct {
	agent                   decode.Addr
	sub, kind, class, index uint32
}

// sflowLast is the last sample of a source.
type sflowLast struct {
	seq, drops uint32
	gaps       uint32 // of the agent's datagrams, until then
	speed      uint64
	name       string
	uptime     uint32           // of the counters
	counters   *sflow.Interface // nil where it has none
}

// sflowUnits are the units of sFlow. They do not depend on the profile, which holds for other formats.
var sflowUnits = decode.DefaultUnits.With(decode.Units{DropReasons: &sflowReasons, HeaderTimeNS: 1e6})

var sflowReasons = func() decode.DropReasons {
	names := decode.DropReasons{}
	for n := range uint32(sflow.Reasons) {
		if code, name := sflow.ReasonCode(n), sflow.ReasonName(n); name != "" {
			names[code] = name
		}
	}
	return names
}()

// SFlowReasons are the names of the drop reasons that reports made of sFlow have.
func SFlowReasons() decode.DropReasons { return maps.Clone(sflowReasons) }

// Inside returns the samples lost within devices, by the figures of sFlow agents. Missing samples are gaps in the
// numbers of their sources, without those of datagrams lost on the way. Dropped ones are samples and notifications
// that the agents dropped.
func (rt *Router) Inside() (missing, dropped uint64) {
	add := func(d *Decoder) {
		if d != nil && d.sflow != nil {
			missing += d.sflow.missing.Load()
			dropped += d.sflow.dropped.Load()
		}
	}
	add(rt.fallback)
	for i := range rt.routes {
		add(rt.routes[i].dec)
	}
	return missing, dropped
}

// readSFlow reads the datagram in data[at:end]. Its samples become reports, and where there are none one report holds
// its number.
func (d *Decoder) readSFlow(b *decode.Batch, src *decode.Addr, data []byte, at, end int, time int64) (n int) {
	x := d.sflow
	h, s := &x.header, &x.sample
	ok := x.reader.Start(h, data, at, end)
	exporter := *src
	if ok && h.IPv != 0 {
		exporter = h.Agent
	}
	next := func(kind decode.Kind) *decode.Report {
		r := d.next(b, time)
		r.Format, r.Kind, r.Units, r.Exporter = decode.SFlow, kind, &sflowUnits, exporter
		r.Has = decode.HasExporter
		if ok {
			r.NodeID, r.HWID, r.Seq, r.HeaderTime = exporter.Node(), uint8(h.SubAgent), h.Seq, h.Uptime
			r.Has |= decode.HasNodeID | decode.HasHWID | decode.HasSeq | decode.HasHeaderTime
			r.SeqBits, r.FirstOfGroup = 32, n == 0
		}
		n++
		return r
	}
	gaps := uint32(0)
	if ok {
		gaps = x.gaps(&exporter, h)
	}
	for x.reader.Next(s) {
		last := x.track(&exporter, h, s, gaps)
		switch s.Kind {
		case sflow.Discard:
			r := next(decode.KindDrop)
			r.DropReason = x.discarded(r.NodeID, &exporter, s.Reason)
			n += d.sample(b, r, data, true)
		case sflow.Flow:
			kind := decode.KindSample
			if s.Output.Format == 1 {
				kind = decode.KindDrop
			} else if s.Has&(sflow.HasDelay|sflow.HasDepth) != 0 {
				kind = decode.KindPostcard
			}
			r := next(kind)
			r.Weight = s.Rate
			if kind == decode.KindDrop {
				r.DropReason = x.discarded(r.NodeID, &exporter, s.Output.Value)
			}
			n += d.sample(b, r, data, kind != decode.KindSample)
			x.traffic(r)
		case sflow.Counters:
			if s.Has&sflow.HasInterface == 0 {
				break
			}
			x.learn(last, exporter.Node(), &exporter)
			used, known := last.utilization(h, &s.Interface)
			counters := last.count(h, &s.Interface)
			last.keep(h, &s.Interface)
			if !known && counters.Has == 0 {
				break
			}
			r := next(decode.KindCounters)
			if r.AddRare().Counters = counters; known {
				hop := hopOf(r)
				port(hop, s.Interface.Index, decode.HopEgressIf, decode.HopL2EgressIf, &hop.EgressIf, &hop.L2EgressIf)
				packet.AddWord(hop, decode.HopTxUtilization, &hop.TxUtilization, used)
			}
		}
	}
	if e := &x.reader.Err; e.Reason != 0 {
		next(0).Fail(e.Format, e.Field, e.Offset, e.Reason)
	} else if n == 0 && !x.reader.Cut {
		next(decode.KindCounters)
	}
	if x.reader.Cut {
		d.cutOff(b, &n, uint64(x.reader.Gone), next)
	}
	return n
}

// cutOff counts the samples behind the end of the capture of a datagram, whose n reports are the last in b. If n is
// 0, the next report stands for the first such sample.
func (d *Decoder) cutOff(b *decode.Batch, n *int, records uint64, next func(decode.Kind) *decode.Report) {
	if *n == 0 {
		next(0)
		records = max(records, 1) - 1
	}
	last := len(b.Reports) - 1
	for b.Reports[last].Flags&decode.Sampled != 0 {
		last-- // to the sample that it is beside
	}
	b.Reports[last].Flags |= decode.Truncated
	b.Cut += records
}

// gaps counts the gaps in the numbers of an agent's datagrams, up to this one.
func (x *sflowState) gaps(agent *decode.Addr, h *sflow.Datagram) uint32 {
	last := x.last(sflowSource{agent: *agent, sub: h.SubAgent})
	if last == nil {
		return 0
	}
	if h.Seq != last.seq+1 {
		last.gaps++
	}
	last.seq = h.Seq
	return last.gaps
}

// last returns the state of a source, nil if there is no place for it.
func (x *sflowState) last(key sflowSource) *sflowLast {
	l := x.sources[key]
	if l == nil && len(x.sources) < maxSources {
		l = &sflowLast{}
		x.sources[key] = l
	}
	return l
}

// track follows the sequence numbers of the source of s and returns its previous state, nil if there is no place for
// it.
func (x *sflowState) track(agent *decode.Addr, h *sflow.Datagram, s *sflow.Sample, gaps uint32) *sflowLast {
	if s.Kind == sflow.Other {
		return nil
	}
	last := x.last(sflowSource{*agent, h.SubAgent, uint32(s.Kind), s.Class, s.Index})
	if last == nil || s.Kind == sflow.Counters && last.counters != nil && last.precedes(h, s) {
		return nil
	}
	if gap := s.Seq - last.seq; last.gaps == gaps && gap > 1 && gap < 1<<16 && last.gaps != 0 {
		x.missing.Add(uint64(gap - 1)) // no datagram is missing that they can have been in
	}
	if more := s.Drops - last.drops; s.Kind != sflow.Counters && last.gaps != 0 && more < 1<<31 {
		x.dropped.Add(uint64(more))
	}
	last.seq, last.gaps = s.Seq, gaps
	if s.Kind != sflow.Counters {
		last.drops = s.Drops
	}
	return last
}

// traffic sets the traffic for which the sampled packet stands.
func (x *sflowState) traffic(r *decode.Report) {
	s := &x.sample
	known := func(p *sflow.Port) uint32 {
		if p.Format == 0 && p.Value != sflow.Internal {
			return p.Value
		}
		return 0
	}
	t := r.AddTraffic()
	t.Ingress, t.Egress = known(&s.Input), known(&s.Output)
	if s.Has&sflow.HasHeader != 0 {
		t.Octets = uint64(s.FrameLen) * uint64(max(s.Rate, 1))
	} else if s.Has&sflow.HasIP != 0 {
		t.Octets = uint64(s.IP.Length) * uint64(max(s.Rate, 1))
	}
}

// sample sets the sample's values of its packet, and with hop those of its hop. It returns the number of reports that
// it appends for telemetry in the packet.
func (d *Decoder) sample(b *decode.Batch, r *decode.Report, data []byte, hop bool) (n int) {
	s, p := &d.sflow.sample, &d.sflow.packet
	if r.Kind == decode.KindDrop {
		r.Flags |= decode.Dropped
		r.Has |= decode.HasDropReason
	}
	if s.Has&sflow.HasHeader != 0 {
		data, at := data[:s.HeaderAt+len(s.Header)], s.HeaderAt
		end := at + max(len(s.Header), int(min(s.FrameLen, 1<<16)))
		switch *p = (packet.Packet{}); s.Protocol {
		case 1:
			p.Ethernet(data, at, end)
		case 11:
			p.IPv4(data, at, end)
		case 12:
			p.IPv6(data, at, end)
		}
		n = d.sampled(b, r, p, data)
	}
	if s.Has&sflow.HasIP != 0 && r.Has&decode.HasFlow == 0 {
		ip, k := &s.IP, &r.Flow
		*k = decode.FlowKey{Src: ip.Src, Dst: ip.Dst, IPVersion: ip.Version, Proto: uint8(ip.Proto)}
		if r.Has |= decode.HasFlow; k.Proto == packet.ProtoTCP || k.Proto == packet.ProtoUDP {
			k.SrcPort, k.DstPort = uint16(ip.SrcPort), uint16(ip.DstPort)
			r.Has |= decode.HasPorts
		}
	}
	if !hop {
		return n
	}
	to := hopOf(r)
	if s.Input.Format == 0 && s.Input.Value != 0 && s.Input.Value != sflow.Internal {
		port(to, s.Input.Value, decode.HopIngressIf, decode.HopL2IngressIf, &to.IngressIf, &to.L2IngressIf)
	}
	if s.Output.Format == 0 && s.Output.Value != 0 && s.Output.Value != sflow.Internal {
		port(to, s.Output.Value, decode.HopEgressIf, decode.HopL2EgressIf, &to.EgressIf, &to.L2EgressIf)
	}
	if s.Has&sflow.HasQueue != 0 && s.Queue < 255 {
		packet.AddQueueID(to, uint8(s.Queue))
	}
	if s.Has&sflow.HasDelay != 0 {
		packet.AddWord(to, decode.HopLatency, &to.Latency, s.Delay) // not where it is saturated
	}
	if s.Has&sflow.HasDepth != 0 {
		packet.AddWord(to, decode.HopQueueOccupancy, &to.QueueOccupancy, s.Depth)
	}
	return n
}

func hopOf(r *decode.Report) *decode.Hop {
	h := r.AddHop()
	h.NodeID, h.Has = r.NodeID, decode.HopNodeID
	return h
}

// port sets an interface: in its narrow place, or in the wide one where it has no room there.
func port(h *decode.Hop, v uint32, narrow, wide decode.HopField, to *uint16, toWide *uint32) {
	if v < 0xffff {
		*to = uint16(v)
		h.Has |= narrow
		return
	}
	*toWide = v
	h.Has |= wide
}
