package scenario

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/emu"
)

func built(t testing.TB, cfg emu.Config, seed uint64) *emu.Network {
	t.Helper()
	n, err := emu.New(cfg, seed)
	if err != nil {
		t.Fatalf("New(seed %d): %v", seed, err)
	}
	return n
}

func reader(t testing.TB, name string) *demux.Decoder {
	t.Helper()
	p, ok := demux.Lookup(name)
	if !ok {
		t.Fatalf("there is no profile %q", name)
	}
	return demux.New(p)
}

// decoded reads a datagram, and fails on any error.
func decoded(t *testing.T, n *emu.Network, d emu.Datagram, seed uint64) []*decode.Report {
	t.Helper()
	var b decode.Batch
	if d.Probe {
		f := frame(d, n.Config().Exporters)
		reader(t, "int-path").Frame(&b, 1, f, len(f), 0)
	} else {
		reader(t, "auto").Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
	}
	for _, r := range b.Reports {
		if err := r.Error(); err != nil || r.Flags&decode.Truncated != 0 {
			t.Fatalf("seed %d: %v, flags %v: %x", seed, err, r.Flags.AppendNames(nil), d.Payload)
		}
	}
	return b.Reports
}

// frame is a datagram as the collector's interface sees it.
func frame(d emu.Datagram, to netip.Addr) []byte {
	src, dst := d.From.Addr().As4(), to.As4()
	number := binary.BigEndian.Uint32
	b := headers.AppendEthernet(nil, station(0x20, number(dst[:])), station(0x10, number(src[:])), headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: headers.ProtoUDP, ID: 7, Src: src, Dst: dst}, headers.UDPLen+len(d.Payload))
	at := len(b)
	b = append(headers.AppendUDP(b, d.From.Port(), d.Port, len(d.Payload)), d.Payload...)
	headers.ChecksumUDP(b[at:], headers.PseudoHeader(b[at-8:at], headers.ProtoUDP, len(b)-at))
	return b
}

func station(kind byte, n uint32) headers.MAC {
	return headers.MAC{0x02, kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func began(j *emu.Journey) time.Duration {
	if len(j.Hops) > 0 {
		return j.Hops[0].Ingress
	}
	return j.At
}
