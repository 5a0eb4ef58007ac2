package sflow_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	goflow "github.com/netsampler/goflow2/v2/decoders/sflow"

	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/internal/plain"
)

// Differences from goflow2 are by the specification. It gives up a datagram at a sample with an unknown tag, and
// returns headers with their padding. It reads the direction of an ACL in the padding of its name. It lacks the
// records 1039 to 1043, and 1005.

// check compares a datagram with goflow2, field by field of those that both read.
func check(t *testing.T, b []byte) {
	t.Helper()
	var want goflow.Packet
	if err := goflow.DecodeMessageVersion(bytes.NewBuffer(b), &want); err != nil {
		t.Fatalf("%x: goflow2: %v", b, err)
	}
	var rd sflow.Reader
	var d sflow.Datagram
	if !rd.Start(&d, b, 0, len(b)) {
		t.Fatal(rd.Err)
	}
	eq := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Fatalf("%s %v, want %v: %x", what, got, want, b)
		}
	}
	eq("header", [4]uint32{d.SubAgent, d.Seq, d.Uptime, d.Samples}, [4]uint32{want.SubAgentId, want.SequenceNumber, want.Uptime, want.SamplesCount})
	agent := d.Agent[:]
	if d.IPv == 4 {
		agent = agent[12:]
	}
	eq("agent", string(agent), string(want.AgentIP))
	var s sflow.Sample
	for i := 0; rd.Next(&s); i++ {
		if i >= len(want.Samples) {
			t.Fatalf("sample %d, want %d", i, len(want.Samples))
		}
		var records []goflow.FlowRecord
		switch w := want.Samples[i].(type) {
		case goflow.FlowSample:
			eq("sample", [10]uint32{s.Tag, s.Seq, s.Class, s.Index, s.Rate, s.Pool, s.Drops, s.Input.Format<<30 | s.Input.Value, s.Output.Format<<30 | s.Output.Value},
				[10]uint32{w.Header.Format, w.Header.SampleSequenceNumber, w.Header.SourceIdType, w.Header.SourceIdValue, w.SamplingRate, w.SamplePool, w.Drops, w.Input, w.Output})
			records = w.Records
		case goflow.ExpandedFlowSample:
			eq("sample", [11]uint32{s.Tag, s.Seq, s.Class, s.Index, s.Rate, s.Pool, s.Drops, s.Input.Format, s.Input.Value, s.Output.Format, s.Output.Value},
				[11]uint32{w.Header.Format, w.Header.SampleSequenceNumber, w.Header.SourceIdType, w.Header.SourceIdValue, w.SamplingRate, w.SamplePool, w.Drops, w.InputIfFormat, w.InputIfValue, w.OutputIfFormat, w.OutputIfValue})
			records = w.Records
		case goflow.DropSample:
			eq("sample", [8]uint32{s.Tag, s.Seq, s.Class, s.Index, s.Drops, s.Input.Value, s.Output.Value, s.Reason},
				[8]uint32{w.Header.Format, w.Header.SampleSequenceNumber, w.Header.SourceIdType, w.Header.SourceIdValue, w.Drops, w.Input, w.Output, w.Reason})
			records = w.Records
		case goflow.CounterSample:
			eq("sample", [4]uint32{s.Tag, s.Seq, s.Class, s.Index}, [4]uint32{w.Header.Format, w.Header.SampleSequenceNumber, w.Header.SourceIdType, w.Header.SourceIdValue})
			for _, r := range w.Records {
				if c, ok := r.Data.(goflow.IfCounters); ok {
					eq("counters", s.Interface, sflow.Interface{c.IfIndex, c.IfType, c.IfSpeed, c.IfDirection, c.IfStatus, c.IfInOctets, c.IfInUcastPkts, c.IfInMulticastPkts, c.IfInBroadcastPkts, c.IfInDiscards,
						c.IfInErrors, c.IfInUnknownProtos, c.IfOutOctets, c.IfOutUcastPkts, c.IfOutMulticastPkts, c.IfOutBroadcastPkts, c.IfOutDiscards, c.IfOutErrors, c.IfPromiscuousMode})
				}
			}
		default:
			eq("kind", s.Kind, sflow.Other)
		}
		for _, r := range records {
			switch w := r.Data.(type) {
			case goflow.SampledHeader:
				eq("header", [3]uint32{s.Protocol, s.FrameLen, s.Stripped}, [3]uint32{w.Protocol, w.FrameLength, w.Stripped})
				if !bytes.HasPrefix(w.HeaderData, s.Header) || len(w.HeaderData)-len(s.Header) > 3 || int(w.OriginalLength) != len(s.Header) {
					t.Fatalf("header %x, want %x", s.Header, w.HeaderData)
				}
			case goflow.SampledIPv4:
				eq("IPv4", [7]uint32{s.IP.Length, s.IP.Proto, s.IP.SrcPort, s.IP.DstPort, s.IP.TCPFlags, s.IP.Class, 4}, [7]uint32{w.Length, w.Protocol, w.SrcPort, w.DstPort, w.TcpFlags, w.Tos, uint32(s.IP.Version)})
				eq("addresses", string(s.IP.Src[12:])+string(s.IP.Dst[12:]), string(w.SrcIP)+string(w.DstIP))
			case goflow.SampledIPv6:
				eq("IPv6", [7]uint32{s.IP.Length, s.IP.Proto, s.IP.SrcPort, s.IP.DstPort, s.IP.TCPFlags, s.IP.Class, 6}, [7]uint32{w.Length, w.Protocol, w.SrcPort, w.DstPort, w.TcpFlags, w.Priority, uint32(s.IP.Version)})
				eq("addresses", string(s.IP.Src[:])+string(s.IP.Dst[:]), string(w.SrcIP)+string(w.DstIP))
			case goflow.ExtendedSwitch:
				eq("switch", [4]uint32{s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority}, [4]uint32{w.SrcVlan, w.SrcPriority, w.DstVlan, w.DstPriority})
			case goflow.EgressQueue:
				eq("queue", s.Queue, w.Queue)
			case goflow.ExtendedACL:
				if eq("ACL", s.ACL, w.Number); len(s.ACLName)%4 == 0 {
					eq("ACL direction", s.ACLDirection, w.Direction)
				}
				eq("ACL", string(s.ACLName), w.Name)
			case goflow.ExtendedFunction:
				eq("function", string(s.Function), w.Symbol)
			}
		}
	}
	if rd.Err.Reason != 0 {
		t.Fatal(rd.Err)
	}
}

func TestAgainstGoflow2(t *testing.T) {
	for _, file := range []string{"testdata/sflow_expanded.pcap", "testdata/sflow_multiple_counter_30_pdus.pcap"} {
		for _, b := range plain.Payloads(t, file) {
			if bytes.HasPrefix(b, []byte{0, 0, 0, 5}) { // there is one of NetFlow 5, too
				check(t, b)
			}
		}
	}
	// Recordings that are not ours to keep.
	files, _ := filepath.Glob(os.Getenv("SFLOW_RECORDINGS"))
	for _, file := range files {
		for _, b := range plain.Payloads(t, file) {
			check(t, b)
			t.Log(filepath.Base(file), len(b))
		}
	}
	rnd := rand.New(rand.NewPCG(28, 2))
	for range 10_000 {
		check(t, plain.RandomSFlow(rnd, false))
	}
}

// A datagram that lies is an error at its place, and never more.
func TestMalformed(t *testing.T) {
	var rd sflow.Reader
	var d sflow.Datagram
	var s sflow.Sample
	for _, b := range plain.Payloads(t, "testdata/sflow_print-segv.pcap") {
		for rd.Start(&d, b, 0, len(b)); rd.Next(&s); {
		}
		if rd.Err.Reason == 0 {
			t.Errorf("%x is read", b)
		}
	}
	rnd := rand.New(rand.NewPCG(28, 3))
	b := plain.RandomSFlow(rnd, false)
	for n := range b {
		for rd.Start(&d, b[:n:n], 0, n); rd.Next(&s); {
		}
		if rd.Err.Reason == 0 || rd.Err.Offset > n {
			t.Errorf("%d of %d bytes: %v", n, len(b), rd.Err)
		}
		for rd.Start(&d, b[:n:n], 0, len(b)); rd.Next(&s); {
		}
		if !rd.Cut || rd.Err.Reason != 0 {
			t.Errorf("%d of %d bytes captured: %v", n, len(b), rd.Err)
		}
	}
}

func TestReasonNames(t *testing.T) {
	for n, want := range map[uint32]string{0: "net unreachable", 15: "precedence cutoff", 16: "", 33: "dev hdr", 36: "tc egress", 255: "", 256: "unknown", 259: "no buffer space", 332: "dev hdr", 366: "tc egress", 371: "socket filter", 372: "bgp flowspec", 373: ""} {
		if got := sflow.ReasonName(n); got != want {
			t.Errorf("reason %d is %q, want %q", n, got, want)
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	list, _ := benchmarkInput()
	var rd sflow.Reader
	var d sflow.Datagram
	var s sflow.Sample
	i := 0
	if n := testing.AllocsPerRun(len(list), func() {
		b := list[i%len(list)]
		for rd.Start(&d, b, 0, len(b)); rd.Next(&s); {
		}
		i++
	}); n != 0 || rd.Err.Reason != 0 {
		t.Errorf("%v allocations, %v", n, rd.Err)
	}
}

func benchmarkInput() (list [][]byte, size int64) {
	rnd := rand.New(rand.NewPCG(28, 4))
	for range 256 {
		b := plain.RandomSFlow(rnd, false)
		list = append(list, b)
		size += int64(len(b))
	}
	return list, size / 256
}

func BenchmarkReader(b *testing.B) {
	list, size := benchmarkInput()
	b.SetBytes(size)
	b.ReportAllocs()
	var rd sflow.Reader
	var d sflow.Datagram
	var s sflow.Sample
	for i := 0; b.Loop(); i++ {
		x := list[i%len(list)]
		for rd.Start(&d, x, 0, len(x)); rd.Next(&s); {
		}
		if rd.Err.Reason != 0 {
			b.Fatal(rd.Err)
		}
	}
}

func BenchmarkGoflow2(b *testing.B) {
	list, size := benchmarkInput()
	b.SetBytes(size)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var p goflow.Packet
		if err := goflow.DecodeMessageVersion(bytes.NewBuffer(list[i%len(list)]), &p); err != nil {
			b.Fatal(err)
		}
	}
}
