package collector

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/sink"
)

// Every limit that is set to about a tenth of what comes reports how much it left out, and which setting to raise.
func TestLeftOut(t *testing.T) {
	reports := func(cfg traffic.Config, count uint64) func(t *testing.T, r *running) {
		return func(t *testing.T, r *running) {
			gen, err := traffic.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			// No faster than a small machine reads: a report that the kernel loses is not left out by the limit.
			if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: r.Addrs()[0], Count: count, Rate: 20_000}, gen); err != nil {
				t.Fatal(err)
			}
		}
	}
	stacks := traffic.Config{Seed: 1, Flows: 400, Hops: 5, Exporters: 40, Bytes: 200}
	long, wide := stacks, stacks
	long.Hops, long.Bytes = 12, 400
	wide.Bytes = 700
	many := stacks
	many.Flows = 20_000
	moving := func(t *testing.T, r *running) {
		other := stacks
		other.Exporters = 30 // reports the same flows over other nodes
		for range 2 {
			reports(stacks, 4000)(t, r)
			reports(other, 4000)(t, r)
		}
	}
	for name, tt := range map[string]struct {
		limit func(cfg *program)
		send  func(t *testing.T, r *running)
		want  string
	}{
		"exporters": {func(c *program) { c.Exporters.Tracking.MaxExporters = 4 }, reports(stacks, 4000),
			"36 exporters are not watched, and their losses are not counted: raise exporters.tracking.max_exporters"},
		"hops":        {func(c *program) { c.Flows.MaxHops = 16 }, reports(stacks, 4000), "records of hops are counted as other, without series or findings of their own: raise flows.max_hops"},
		"daily flows": {func(c *program) { c.Flows.DailyFlows = 10 }, reports(stacks, 4000), "90 rows of flows are stored as other, because the day has no place for their series: raise flows.daily_flows"},
		"flows": {func(c *program) { c.Shards, c.Flows.MemoryBytes = 1, 1<<20 }, reports(many, 20_000),
			"flows were forgotten early to make room for others: raise flows.memory_bytes"},
		"path length":     {func(c *program) { c.Flows.PathLength, c.Flows.MaxPathLength = 1, 1 }, reports(long, 4000), "raise flows.max_path_length"},
		"paths":           {func(c *program) { c.Flows.MaxPathChanges = 10 }, moving, "raise flows.max_path_changes"},
		"histories":       {func(c *program) { c.Events.MaxHops = 16 }, reports(stacks, 4000), "raise events.max_hops"},
		"changes":         {func(c *program) { c.Events.MaxFlows = 10 }, moving, "raise events.max_flows"},
		"drops":           {func(c *program) { c.Flows.MaxDrops = 4 }, sendDrops, "36 reports of drops are counted and not listed by node and reason: raise flows.max_drops"},
		"drops followed":  {func(c *program) { c.Events.MaxDrops = 4 }, sendDrops, "36 times drops of a node for a reason were not followed in a window: raise events.max_drops"},
		"paths of probes": {func(c *program) { c.Events.MaxProbes = 4 }, sendProbes, "36 times a path of probes was not judged in a window, because there is no place for its history: raise events.max_probes"},
		"rows":            {func(c *program) { c.Flows.MaxHops = 4 }, sendDrops, "36 rows of exporters, interfaces and findings are stored as other"},
		"datagrams": {func(c *program) { c.UDP.MaxDatagramBytes = 64 }, reports(wide, 100),
			"100 datagrams were cut, and what is beyond the cut is lost: raise udp.max_datagram_bytes"},
		"templates": {func(c *program) { c.IPFIX.Templates = 4 }, sendTemplates, "36 templates and exporters of IPFIX made room for others"},
		"parked": {func(c *program) { c.IPFIX.ParkedSets = 4 }, sendParked,
			"36 data sets of IPFIX left before their template came, because too many waited: raise ipfix.parked_sets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.Window = time.Hour // one, which ends with the run
			tt.limit(cfg)
			r := start(t, cfg)
			tt.send(t, r)
			r.stop()
			s := r.Status()
			for _, list := range [][]string{s.LeftOut, s.Problems} {
				if !strings.Contains(strings.Join(list, "\n"), tt.want) {
					t.Errorf("%q is not said: %q", tt.want, list)
				}
			}
		})
	}
}

// raw is a writer of reports that has room for some.
type raw struct{ room, taken, dropped atomic.Int64 }

func (w *raw) Start()                      {}
func (w *raw) Close(context.Context) error { return nil }
func (w *raw) Counts() (taken, dropped uint64) {
	return uint64(w.taken.Load()), uint64(w.dropped.Load())
}

func (w *raw) AppendReports(reports []*decode.Report) {
	for range reports {
		if w.room.Add(-1) >= 0 {
			w.taken.Add(1)
		} else {
			w.dropped.Add(1)
		}
	}
}

// Reports that the raw stream has no room for are said, in the text of readiness as well.
func TestRawLeftOut(t *testing.T) {
	w := &raw{}
	w.room.Store(4)
	src := &canned{workers: 1, batches: 1, frames: datagrams(t, 40), waits: true, times: func(_, _ int) int64 { return 1e18 }}
	c := newEngine(t, nil, Options{Policy: Replay, Seed: 7, Sources: []Source{{Name: "canned", Source: src}}, Reports: []sink.ReportWriter{w}})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	s := c.Status()
	const want = "36 reports are missing in the raw stream, because its memory was full: raise parquet.raw_memory_bytes"
	if !slices.Contains(s.LeftOut, want) || !strings.Contains(strings.Join(s.Problems, "\n"), want) {
		t.Errorf("%q is not said: %q, %q", want, s.LeftOut, s.Problems)
	}
}

// Where limits are as they are, nothing is left out.
func TestNothingLeftOut(t *testing.T) {
	r := start(t, testConfig())
	sendDrops(t, r)
	r.stop()
	if s := r.Status(); len(s.LeftOut) > 0 {
		t.Errorf("left out: %q", s.LeftOut)
	}
}

// sendTo sends datagrams from one socket, and waits until the collector has received them.
func sendTo(t *testing.T, r *running, list [][]byte) {
	t.Helper()
	conn, err := net.Dial("udp", r.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, b := range list {
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	r.waitFor("the datagrams", func() bool { return r.opt.Sources[0].Stats().Frames >= uint64(len(list)) })
}

// sendDrops sends a drop of each of 40 nodes.
func sendDrops(t *testing.T, r *running) {
	var list [][]byte
	for node := range uint32(40) {
		h := telemetry.Header{NodeID: node + 1, Inner: telemetry.InnerIPv4, Flags: decode.Dropped, Metadata: telemetry.MDInterfaces | telemetry.MDDrop, DropReason: 3}
		inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
		inner = packet.AppendUDP(inner, 5000, 6000, 0)
		list = append(list, append(telemetry.Append20(telemetry.AppendGroup(nil, 1, 0, h.NodeID), &h, len(inner)), inner...))
	}
	sendTo(t, r, list)
}

// sendProbes sends counts of probes of 40 paths.
func sendProbes(t *testing.T, r *running) {
	var list [][]byte
	inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
	inner = packet.AppendUDP(inner, 5000, 862, 0)
	for path := range uint32(40) {
		h := telemetry.Header{Inner: telemetry.InnerIPv4, Probes: &decode.ProbeCounts{Path: path, Sent: 10, Received: 10}}
		list = append(list, append(telemetry.Append20(telemetry.AppendGroup(nil, 1, path, 9), &h, len(inner)), inner...))
	}
	sendTo(t, r, list)
}

// sendTemplates sends 40 templates of one exporter.
func sendTemplates(t *testing.T, r *running) {
	var list [][]byte
	for id := range uint16(40) {
		list = append(list, ipfix.AppendMessage(nil, &ipfix.Message{Version: ipfix.V10, Time: 1_700_000_000, Domain: 1}, func(b []byte) []byte {
			return ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return append(b, 1, byte(id), 0, 1, 0, 8, 0, 4) })
		}))
	}
	sendTo(t, r, list)
}

// sendParked sends 40 data sets of one exporter whose template does not come.
func sendParked(t *testing.T, r *running) {
	var list [][]byte
	for n := range uint32(40) {
		list = append(list, ipfix.AppendMessage(nil, &ipfix.Message{Version: ipfix.V10, Time: 1_700_000_000, Seq: n, Domain: 1}, func(b []byte) []byte {
			return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte { return append(b, 10, 0, 0, 1) })
		}))
	}
	sendTo(t, r, list)
}
