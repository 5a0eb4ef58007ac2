package scenario

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

// GearKinds are the kinds of gear, in the order of help texts.
var GearKinds = []string{"sonic", "arista", "linux", "juniper"}

// gearKind holds the differences between kinds of gear.
type gearKind struct {
	port   string // name of an interface, of its number
	speed  uint64 // bit/s
	full   uint32 // reasons of drops: a full queue, on a router no route, and an access list
	denied uint32
	has    sflow.Field // records of samples
	drops  sflow.Field // records of drop notifications
	ipfix  bool        // in place of sFlow
}

var gearKinds = map[string]gearKind{
	"sonic":  {"Ethernet%d", 100e9, 259, 258, sflow.HasHeader, sflow.HasHeader | sflow.HasQueue | sflow.HasTrap, false},
	"arista": {"Ethernet%d/1", 100e9, 259, 258, sflow.HasHeader | sflow.HasQueue | sflow.HasDelay | sflow.HasDepth, sflow.HasHeader | sflow.HasQueue | sflow.HasACL, false},
	"linux":  {"eth%d", 10e9, reasonOf("tc egress"), reasonOf("socket filter"), sflow.HasHeader, sflow.HasHeader | sflow.HasFunction | sflow.HasLinuxReason, false},
	// The meaning of a code depends on the platform. These two are from memory: a route that discards, and a firewall.
	"juniper": {"et-0/0/%d", 100e9, 66, 67, 0, 0, true},
}

// reasonOf is the number of a reason by its name.
func reasonOf(name string) uint32 {
	for r := range uint32(sflow.Reasons) {
		if sflow.ReasonName(r) == name {
			return r
		}
	}
	panic("gear: no reason is called " + name)
}

// The network, and the script of its faults, which repeats.
const (
	gearDevices = 6
	gearPorts   = 8
	Step        = time.Second // between two datagrams of a device
	Repeat      = 180 * time.Second
	rate        = 4096 // one packet of so many is sampled
	packetLen   = 800

	busyDevice, busyPort = 0, 3 // Congested
	deniedAt             = 4    // Denied
	badDevice, badPort   = 2, 1 // Damaged
	silentDevice         = 3    // Silent
)

// gearFault is a fault of a network.
type gearFault uint8

// The faults, in the order of the script.
const (
	congested gearFault = iota // a port is nearly full and discards packets
	denied                     // an access list drops a flow's packets
	damaged                    // a port receives damaged packets, which IPFIX does not report
	silent                     // a device sends nothing
	faults
)

// gearScript holds the beginning and the end of each fault.
var gearScript = [faults][2]time.Duration{
	congested: {70 * time.Second, 90 * time.Second}, denied: {95 * time.Second, 107 * time.Second},
	damaged: {112 * time.Second, 122 * time.Second}, silent: {130 * time.Second, 150 * time.Second},
}

// Gear is the devices. It is for one goroutine.
type Gear struct {
	kind    gearKind
	rnd     *rand.Rand
	start   time.Time
	at      time.Duration
	devices [gearDevices]gearDevice
	buf     []byte
}

type gearDevice struct {
	seq, drops uint32 // numbers of datagrams and of drop notifications
	samples    uint32
	counters   [gearPorts]sflow.Interface
	polls      uint32
	messages   [2]uint32 // records before the next message, by domain
}

// NewGear makes a network of one of [GearKinds].
func NewGear(name string, seed uint64) (*Gear, error) {
	k, ok := gearKinds[name]
	if !ok {
		return nil, fmt.Errorf("%q is none of %v", name, GearKinds)
	}
	n := &Gear{kind: k, start: time.Now(), rnd: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
	for d := range n.devices {
		for p := range n.devices[d].counters {
			n.devices[d].counters[p] = sflow.Interface{
				Index: uint32(p + 1), Type: 6, Speed: k.speed, Direction: 1, Status: 3, InOctets: n.rnd.Uint64() >> 20, OutOctets: n.rnd.Uint64() >> 20,
				InUnicast: n.rnd.Uint32(), OutUnicast: n.rnd.Uint32(), InErrors: n.rnd.Uint32N(99), OutDiscards: n.rnd.Uint32N(99),
			}
		}
	}
	return n, nil
}

// gearAgent is the address that a device has in sFlow.
func gearAgent(d int) decode.Addr { return decode.AddrFrom4([]byte{10, 0, 0, byte(d + 1)}) }

// GearSource is the address that the datagrams of a device come from. Of IPFIX, it is the exporter.
func GearSource(d int) netip.Addr { return netip.AddrFrom4([4]byte{127, 18, 0, byte(d + 1)}) }

// Interface is the name of a port of a device.
func (n *Gear) Interface(port int) string { return fmt.Sprintf(n.kind.port, port+1) }

// Sends is the protocol that the devices send, in words.
func (n *Gear) Sends() string {
	if n.kind.ipfix {
		return "IPFIX"
	}
	return "sFlow"
}

// has reports whether a fault is there now. The first round of the script begins with quiet time, in which what is usual is learnt.
func (n *Gear) has(f gearFault) bool {
	at := n.at % Repeat
	return at >= gearScript[f][0] && at < gearScript[f][1]
}

// silent reports whether a device sends nothing now. Messages that it does not send have no number.
func (n *Gear) silent(d int) bool { return d == silentDevice && n.has(silent) }

// Next advances by one Step, and passes its datagrams to send, with their devices. The function send keeps none of
// them.
func (n *Gear) Next(send func(device int, payload []byte)) {
	n.at += Step
	step := n.datagrams
	if n.kind.ipfix {
		step = n.messages
	}
	for d := range n.devices {
		step(d, func(payload []byte) {
			n.buf = payload
			send(d, payload)
		})
	}
}

// datagrams makes those of sFlow that a device sends in a step.
func (n *Gear) datagrams(d int, send func(payload []byte)) {
	x, samples := &n.devices[d], n.samples(d)
	if n.silent(d) {
		return
	}
	for len(samples) > 0 { // that fit into a datagram
		part := samples[:min(len(samples), 6)]
		samples = samples[len(part):]
		x.seq++
		head := sflow.Datagram{IPv: 4, Agent: gearAgent(d), Seq: x.seq, Uptime: uint32((n.at + time.Hour).Milliseconds()), Samples: uint32(len(part))}
		b := sflow.AppendDatagram(n.buf[:0], &head)
		for i := range part {
			b = sflow.AppendSample(b, &part[i])
		}
		send(b)
	}
}

// samples makes those of a device: of the flows that pass, of the packets that it drops, and of its counters.
func (n *Gear) samples(d int) (all []sflow.Sample) {
	x := &n.devices[d]
	x.polls++
	for p := range gearPorts {
		load := .25 + .1*n.rnd.Float64()
		busy := d == busyDevice && p == busyPort && n.has(congested)
		if busy {
			load = .97 + .02*n.rnd.Float64()
		}
		c := &x.counters[p]
		octets := load * float64(n.kind.speed) / 8 * Step.Seconds()
		c.OutOctets += uint64(octets)
		c.InOctets += uint64(octets / 2)
		c.OutUnicast += uint32(octets / packetLen)
		c.InUnicast += uint32(octets / 2 / packetLen)
		if busy {
			c.OutDiscards += uint32(octets / packetLen / 50)
			all = append(all, n.dropped(d, p, n.kind.full)...)
		}
		if d == badDevice && p == badPort && n.has(damaged) {
			c.InErrors += uint32(octets / packetLen / 1000)
		}
		all = append(all, n.sampled(d, p, busy))
		all = append(all, sflow.Sample{Kind: sflow.Counters, Seq: x.polls, Index: c.Index, Has: sflow.HasInterface | sflow.HasPortName, Interface: *c, PortName: []byte(n.Interface(p))})
	}
	if d == deniedAt && n.has(denied) {
		all = append(all, n.dropped(d, 2, n.kind.denied)...)
	}
	return all
}

// sampled is one of the packets that leave by a port.
func (n *Gear) sampled(d, p int, busy bool) sflow.Sample {
	x := &n.devices[d]
	x.samples++
	s := sflow.Sample{
		Kind: sflow.Flow, Seq: x.samples, Index: uint32(p + 1), Rate: rate, Pool: x.samples * rate, Has: n.kind.has,
		Input: sflow.Port{Value: uint32((p+5)%gearPorts + 1)}, Output: sflow.Port{Value: uint32(p + 1)}, Queue: 3,
		Delay: 1200 + n.rnd.Uint32N(400), Depth: 2000 + n.rnd.Uint32N(3000),
	}
	if busy {
		s.Delay, s.Depth = 900_000+n.rnd.Uint32N(200_000), 11_000_000+n.rnd.Uint32N(1_000_000)
	}
	packetOf(&s, d, p, n.rnd.IntN(4))
	return s
}

// dropped are notifications of packets that were to leave by a port.
func (n *Gear) dropped(d, p int, reason uint32) (all []sflow.Sample) {
	for i := range 4 {
		x := &n.devices[d]
		x.drops++
		s := sflow.Sample{
			Kind: sflow.Discard, Seq: x.drops, Index: uint32(p + 1), Reason: reason, Has: n.kind.drops, Queue: 3,
			Input: sflow.Port{Value: uint32((p+5)%gearPorts + 1)}, Output: sflow.Port{Value: uint32(p + 1)},
			Group: []byte("buffer_drops"), Trap: []byte("tail_drop"), ACLName: []byte("DENY-TELNET"), ACL: 1, ACLDirection: 1,
			Function: []byte("kfree_skb_list_reason"), LinuxReason: []byte("QDISC_DROP"),
		}
		if reason == n.kind.denied {
			s.Group, s.Trap, s.LinuxReason = []byte("acl_drops"), []byte("ingress_flow_action_drop"), []byte("SOCKET_FILTER")
		} else {
			s.Has &^= sflow.HasACL
		}
		packetOf(&s, d, p, i)
		all = append(all, s)
	}
	return all
}

// packetOf sets the header of a sample to that of a packet of one of four flows by a port.
func packetOf(s *sflow.Sample, d, p, flow int) {
	h := make([]byte, 64)
	h[12], h[14], h[22], h[23] = 8, 0x45, 62, 6
	binary.BigEndian.PutUint16(h[16:], packetLen-18)
	copy(h[26:], []byte{10, 1, byte(d), byte(flow + 1), 10, 2, byte(p), 1})
	binary.BigEndian.PutUint16(h[34:], uint16(40_000+100*d+10*p+flow))
	binary.BigEndian.PutUint16(h[36:], 443)
	s.Protocol, s.FrameLen, s.Stripped, s.Header = 1, packetLen, 4, h
}

// Play sends a network's datagrams to an address over UDP, each from the address of its device, until ctx ends. Its time passes speed times as fast
// as that of a clock.
func (n *Gear) Play(ctx context.Context, to netip.AddrPort, speed int) error {
	var sockets [gearDevices]*net.UDPConn
	for d := range sockets {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(GearSource(d), 0)), net.UDPAddrFromAddrPort(to))
		if err != nil {
			return err
		}
		defer c.Close()
		sockets[d] = c
	}
	tick := time.NewTicker(Step / time.Duration(speed))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			n.Next(func(d int, payload []byte) { _, _ = sockets[d].Write(payload) }) // a datagram that is lost is lost
		}
	}
}
