package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// Queries for frequent values and for a sum along the path go from the plan to switches that follow it. Their reports
// lead to the summary of a replay. Two packets in three meet a queue of one length at each hop, the others any, and
// each hop takes 20 µs.
func TestAnswersFromPlanToSummary(t *testing.T) {
	const packets = 4000
	text, err := planQueries(t, "../../docs/examples/answers.yaml", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pintplan.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := write("hopscope.yaml", fmt.Sprintf("pint:\n  plans: [%s]\n", write("plan.json", text)))
	rng := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	path := []uint32{17, 3, 60, 41, 8}
	file := digestCapture(t, layers.LinkTypeRaw, packets, func(i int) []byte {
		d := decode.Digest{Epoch: plan.Epoch, Hops: uint8(len(path)), ID: rng.Uint32()}
		for k, node := range path {
			v := pint.Values{Node: node, Queue: 10_000 * uint64(k+1), Latency: 20_000}
			if rng.IntN(3) == 0 {
				v.Queue = rng.Uint64N(1_000_000)
			}
			d.Value = plan.Write(d.Value, d.ID, k+1, v, rng.Uint32())
		}
		return digestReport(t, &d, plan.Bits, i)
	})
	args := []string{file, "--config", settings, "--nodes", "0-79"}
	s := runReplay(t, args...)
	if len(s.Flows) != 1 || len(s.Flows[0].Hops) != len(path) || !s.Flows[0].Path.Complete {
		t.Fatalf("%d flows, %+v", len(s.Flows), s.Flows)
	}
	for i, h := range s.Flows[0].Hops {
		want := 10_000 * float64(i+1)
		if h.NodeID != path[i] || h.Frequent == nil || h.Frequent.Of != pint.QueueValue {
			t.Fatalf("hop %d: %+v", i+1, h)
		}
		// Two neighbouring codes stand for a value between them.
		near, most := 0.0, 0.0
		for _, v := range h.Frequent.Values {
			if v.Value > want*.95 && v.Value < want*1.05 {
				near += v.Least
				most += v.Most
			}
		}
		if near < .5 || most > .85 {
			t.Errorf("hop %d: %.2f to %.2f of the digests within 5 %% of %v, want two in three: %+v", i+1, near, most, want, h.Frequent.Values)
		}
	}
	if w := s.Flows[0].Whole; w == nil || w.Of != "sum of latency" || w.Digests != packets || w.P50 < 90_000 || w.P50 > 110_000 || w.P99 > 130_000 {
		t.Errorf("latency from end to end: %+v, want about 100 µs", w)
	}
	table, problem, status := runs(t, append([]string{"replay"}, args...)...)
	if status != 0 || !strings.Contains(table, "Frequent values of these flows") || !strings.Contains(table, "Values of the whole paths of these flows") || !strings.Contains(table, "sum of latency") {
		t.Errorf("status %d: %s\n%s", status, problem, table)
	}
}

// digestReport is the i-th report of a switch, with a digest of a packet of one flow.
func digestReport(t *testing.T, d *decode.Digest, bits, i int) []byte {
	t.Helper()
	inner := []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 19, 137, 0, 8, 0, 0}
	h := telemetry.Header{Flags: decode.Tracked, Inner: telemetry.InnerIPv4, Digest: d, DigestBits: bits}
	report := append(telemetry.Append20(telemetry.AppendGroup(nil, 0, uint32(i), 8), &h, len(inner)), inner...)
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 8}, DstIP: []byte{192, 0, 2, 1}}
	udp := &layers.UDP{SrcPort: 40000, DstPort: 32766}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, udp, gopacket.Payload(report)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Ids in fragments go from the plan through the tables of emulated switches to the summary of a replay. Nodes whose ids the
// fragments have no room for are refused.
func TestFragmentsFromPlanToSummary(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	queries := write("queries.yaml", "bits: 8\nhash: crc\nqueries: [{name: path, value: node, aggregation: static, hops: 5, nodes: 80, widths: [{bits: 4, fragments: 2}]}]\n")
	text, err := planQueries(t, queries, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pintplan.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := pintplan.Entries(plan)
	if err != nil {
		t.Fatal(err)
	}
	program, err := pintplan.Compile(plan.Epoch, entries)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	path := []uint32{17, 3, 60, 41, 8}
	file := digestCapture(t, layers.LinkTypeRaw, 400, func(i int) []byte {
		d := decode.Digest{Epoch: plan.Epoch, Hops: uint8(len(path)), ID: rng.Uint32()}
		for k, node := range path {
			d.Value, _ = program.Write(d.Value, d.ID, k+1, pint.Values{Node: node}, rng.Uint32())
		}
		return digestReport(t, &d, plan.Bits, i)
	})
	settings := write("hopscope.yaml", fmt.Sprintf("pint:\n  plans: [%s]\n", write("plan.json", text)))
	s := runReplay(t, file, "--config", settings, "--nodes", "0-255")
	if len(s.Flows) != 1 || len(s.Flows[0].Hops) != len(path) || !s.Flows[0].Path.Complete {
		t.Fatalf("%d flows, %+v", len(s.Flows), s.Flows)
	}
	for i, h := range s.Flows[0].Hops {
		if h.NodeID != path[i] {
			t.Errorf("hop %d is node %d, want %d", i+1, h.NodeID, path[i])
		}
	}
	if _, problem, status := runs(t, "replay", file, "--config", settings, "--nodes", "0-256"); status == 0 || !strings.Contains(problem, "its digests carry ids of 8 bits, and node 256 needs more") {
		t.Errorf("status %d: %s", status, problem)
	}
	for _, tt := range []struct{ format, want string }{{"p4", "pint_path_fragment shift"}, {"entries", ""}} {
		out, err := planQueries(t, queries, "--format", tt.format)
		if tt.want == "" && (err == nil || !strings.Contains(err.Error(), "not their fragments")) || tt.want != "" && !strings.Contains(out, tt.want) {
			t.Errorf("--format %s: %v, %s", tt.format, err, out)
		}
	}
}
