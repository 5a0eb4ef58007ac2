package traffic

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// parsed is a datagram as read by hand, straight from the offsets of the specification.
type parsed struct {
	node, seq uint32
	src, dst  netip.AddrPort
	id        uint16
	hops      []hop // newest first
}

type hop struct {
	node, latency, queue uint32
	in, out              uint16
}

// parse checks everything that is fixed and returns the rest.
func parse(t *testing.T, b []byte, hops int) parsed {
	t.Helper()
	be := binary.BigEndian
	check := func(what string, got, want uint64) {
		t.Helper()
		if got != want {
			t.Fatalf("%s is %d (%#x), want %d in %x", what, got, got, want, b)
		}
	}
	check("report version", uint64(b[0]>>4), 2)
	check("hardware id", uint64(be.Uint16(b)>>6&0x3f), 0)
	p := parsed{seq: be.Uint32(b) & 0x3fffff, node: be.Uint32(b[4:])}
	check("RepType and InType", uint64(b[8]), 0x14)
	if words := (len(b) - 12) / 4; words < 255 {
		check("report length", uint64(b[9]), uint64(words))
	} else {
		check("report length", uint64(b[9]), 255)
	}
	ip := b[20:]
	if hops == 0 {
		check("MD length", uint64(b[10]), 3)
		check("report flags", uint64(b[11]), 0)
		check("RepMdBits", be.Uint64(b[12:]), 0x7000<<48)
		p.hops = []hop{{p.node, be.Uint32(b[24:]), be.Uint32(b[28:]), be.Uint16(b[20:]), be.Uint16(b[22:])}}
		ip = b[32:]
	} else {
		check("MD length", uint64(b[10]), 0)
		check("report flags", uint64(b[11]), 0x20)
		check("RepMdBits and domain", be.Uint64(b[12:]), 0)
	}
	check("IP version and header length", uint64(ip[0]), 0x45)
	check("IP total length", uint64(be.Uint16(ip[2:])), uint64(len(ip)))
	check("IP protocol", uint64(ip[9]), 17)
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	check("IP checksum", uint64(sum%0xffff), 0)
	p.id = be.Uint16(ip[4:])
	udp := ip[20:]
	p.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:16])), be.Uint16(udp[0:]))
	p.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:20])), be.Uint16(udp[2:]))
	check("UDP length", uint64(be.Uint16(udp[4:])), uint64(len(udp)))
	if hops == 0 {
		check("DSCP", uint64(ip[1]>>2), 0)
		return p
	}
	check("DSCP", uint64(ip[1]>>2), 0x17)
	shim := udp[8:]
	check("shim type and NPT", uint64(shim[0]), 0x10)
	check("shim length", uint64(shim[1]), uint64(3+4*hops))
	md := shim[4:]
	check("INT version and flags", uint64(md[0]), 0x20)
	check("hop ML", uint64(md[2]), 4)
	check("instructions", uint64(be.Uint16(md[4:])), 0xf000)
	for i := range hops {
		h := md[12+16*i:]
		p.hops = append(p.hops, hop{be.Uint32(h), be.Uint32(h[8:]), be.Uint32(h[12:]), be.Uint16(h[4:]), be.Uint16(h[6:])})
	}
	return p
}

// Every datagram is well formed, counts on without a gap, and says about its flow what Flow says.
func TestGenerator(t *testing.T) {
	for _, cfg := range []Config{
		DefaultConfig(),
		{Seed: 2, Flows: 1, Hops: 1, Exporters: 1, Bytes: minBytes(1)},
		{Seed: 3, Flows: 7, Hops: 3, Exporters: 3, Bytes: 1460},
		{Seed: 4, Flows: 1000, Hops: maxHops, Exporters: 9, Bytes: minBytes(maxHops)},
		{Seed: 5, Flows: 100, Hops: 0, Exporters: 2, Bytes: 60},
		{Seed: 6, Flows: 100, Hops: 0, Exporters: 2, Bytes: 200},
		{Seed: 7, Flows: maxFlows, Hops: 5, Exporters: 1000, Bytes: 200},
		{Seed: 8, Flows: 5, Hops: 2, Exporters: 2, Bytes: maxBytes},
	} {
		g, err := New(cfg)
		if err != nil {
			t.Fatalf("New(%+v): %v", cfg, err)
		}
		second, _ := New(cfg)
		seq := map[uint32]uint32{}
		paths := map[netip.AddrPort][]hop{}
		latencies := map[uint32]bool{}
		var buf []byte
		for range 5000 {
			buf = g.Next(buf)
			if len(buf) != cfg.Bytes || len(buf) != g.Bytes() {
				t.Fatalf("seed %d: %d bytes, want %d", cfg.Seed, len(buf), cfg.Bytes)
			}
			if other := second.Next(nil); !bytes.Equal(buf, other) {
				t.Fatalf("seed %d gave %x, then %x", cfg.Seed, buf, other)
			}
			p := parse(t, buf, cfg.Hops)
			if p.seq != seq[p.node] {
				t.Fatalf("seed %d: node %d sequence %d, want %d", cfg.Seed, p.node, p.seq, seq[p.node])
			}
			seq[p.node]++
			src := p.src.Addr().As4()
			flow := int(src[1])<<16 | int(src[2])<<8 | int(src[3])
			if flow >= cfg.Flows {
				t.Fatalf("seed %d: flow %d of %d", cfg.Seed, flow, cfg.Flows)
			}
			want := g.Flow(flow)
			if p.src != want.Src || p.dst != want.Dst || int(p.node) != want.Exporter+1 {
				t.Fatalf("seed %d: %v to %v by node %d, want %+v", cfg.Seed, p.src, p.dst, p.node, want)
			}
			for i := range p.hops {
				if cfg.Hops > 0 && p.hops[i].node != want.Nodes[cfg.Hops-1-i] {
					t.Fatalf("seed %d: hop %d is node %d, want %v reversed", cfg.Seed, i, p.hops[i].node, want.Nodes)
				}
				latencies[p.hops[i].latency] = true
				p.hops[i].latency, p.hops[i].queue = 0, p.hops[i].queue>>24
			}
			if old, ok := paths[p.src]; ok && !slices.Equal(old, p.hops) {
				t.Fatalf("seed %d: path of %v was %v, is %v", cfg.Seed, p.src, old, p.hops)
			}
			paths[p.src] = p.hops
		}
		if len(seq) != min(cfg.Exporters, 5000) {
			t.Errorf("seed %d: %d exporters, want %d", cfg.Seed, len(seq), cfg.Exporters)
		}
		// 5000 draws leave one of up to 7 flows out with a probability below 1e-300.
		if cfg.Flows <= 7 && len(paths) != cfg.Flows {
			t.Errorf("seed %d: %d flows, want %d", cfg.Seed, len(paths), cfg.Flows)
		}
		if len(latencies) < 100 {
			t.Errorf("seed %d: %d different latencies", cfg.Seed, len(latencies))
		}
	}
}

// The first datagram of a small configuration, byte by byte.
func TestGeneratorBytes(t *testing.T) {
	g, err := New(Config{Seed: 1, Flows: 1, Hops: 1, Exporters: 1, Bytes: 84})
	if err != nil {
		t.Fatal(err)
	}
	b := g.Next(nil)
	for at, want := range map[int]string{
		0:  "20 00 00 00  00 00 00 01",                           // 2.0, hw_id 0, seq 0; node 1
		8:  "14 12 00 20  00 00 00 00  00 00 00 00",              // INT, IPv4, 18 words, F
		20: "45 5c 00 40",                                        // IPv4, DSCP 0x17, 64 bytes
		26: "40 00 3f 11",                                        // DF, TTL 63, UDP
		32: "0a 00 00 00",                                        // flow 0
		42: "01 bb 00 2c 00 00",                                  // port 443, 44 bytes, no checksum
		48: "10 07 00 00  20 00 04 08  f0 00 00 00  00 00 00 00", // shim, MD header
		64: "00 00 00 01",                                        // node 1
		80: "61 62 63 64",
	} {
		w, err := hex.DecodeString(strings.ReplaceAll(want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := b[at : at+len(w)]; !bytes.Equal(got, w) {
			t.Errorf("at %d: % x, want % x", at, got, w)
		}
	}
}

// A sequence number is 22 bits wide and wraps.
func TestSequenceWraps(t *testing.T) {
	g, err := New(Config{Seed: 1, Flows: 1, Hops: 0, Exporters: 1, Bytes: 60})
	if err != nil {
		t.Fatal(err)
	}
	g.seq[0] = 1<<22 - 1
	for _, want := range []uint32{1<<22 - 1, 0, 1} {
		if p := parse(t, g.Next(nil), 0); p.seq != want {
			t.Errorf("sequence %d, want %d", p.seq, want)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"default", func(*Config) {}, nil},
		{"too short", func(c *Config) { c.Bytes = 140 }, []string{"bytes: 140 is outside 144..65504"}},
		{"odd", func(c *Config) { c.Bytes = 202 }, []string{"not a multiple of 4"}},
		{"more exporters than flows", func(c *Config) { c.Flows = 3 }, []string{"exporters: 4 is outside 1..3"}},
		{"all", func(c *Config) { *c = Config{Hops: 64, Exporters: -1, Flows: -1} }, []string{"flows", "hops", "exporters", "bytes"}},
	}
	for _, tt := range tests {
		c := DefaultConfig()
		tt.change(&c)
		_, err := New(c)
		if (err != nil) != (tt.want != nil) {
			t.Errorf("%s: New: %v, want %q", tt.name, err, tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not say %q", tt.name, err, want)
			}
		}
	}
}

func TestNextAllocs(t *testing.T) {
	g, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, g.Bytes())
	if n := testing.AllocsPerRun(1000, func() { buf = g.Next(buf) }); n != 0 {
		t.Errorf("%v allocations a datagram, want 0", n)
	}
}

func BenchmarkNext(b *testing.B) {
	g, err := New(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(g.Bytes()))
	buf := make([]byte, 0, g.Bytes())
	for b.Loop() {
		buf = g.Next(buf)
	}
}
