package collector

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
	"github.com/hopscope/hopscope/sink/web"
)

// churn is a source of which nothing comes back: flows, exporters and nodes are new every two seconds. Some nodes stay, and have faults now
// and then.
type churn struct{ rng *rand.Rand }

func (*churn) Workers() int        { return 1 }
func (*churn) Stats() ingest.Stats { return ingest.Stats{} }

func (s *churn) Run(ctx context.Context, handle func(int, *ingest.Batch)) error {
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Second):
			handle(0, &ingest.Batch{Frames: s.frames(turn)})
		}
	}
}

// frames are those that come at a time.
func (s *churn) frames(turn int) (list []ingest.Frame) {
	add := func(data []byte, from uint32) {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], from)
		list = append(list, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: time.Now().UnixNano(), Src: netip.AddrPortFrom(netip.AddrFrom4(a), 5000)})
	}
	gen, err := traffic.New(traffic.Config{Seed: uint64(turn), Flows: 40, Hops: 5, Exporters: 4, Bytes: 200})
	if err != nil {
		panic(err)
	}
	for range 25 {
		add(gen.Next(nil), 0x0a000000|s.rng.Uint32()>>8)
	}
	report := func(node uint32, flags decode.Flags, latency float64, from uint32) {
		h := telemetry.Header{NodeID: node, Seq: uint32(turn), Inner: telemetry.InnerIPv4, Flags: flags, Metadata: telemetry.MDInterfaces | telemetry.MDLatency}
		h.Hop.Has, h.Hop.IngressIf, h.Hop.EgressIf, h.Hop.Latency = decode.HopIngressIf|decode.HopEgressIf|decode.HopLatency, 1, uint16(node%7), uint32(latency)
		if flags&decode.Dropped != 0 {
			h.Metadata, h.DropReason = telemetry.MDInterfaces|telemetry.MDDrop, uint8(node%5)
		}
		port := uint16(s.rng.Uint32())
		inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, byte(port), byte(port >> 8), 1}, Dst: [4]byte{10, 0, byte(turn), 2}}, 8)
		inner = packet.AppendUDP(inner, port, 6000, 0)
		add(append(telemetry.Append20(telemetry.AppendGroup(nil, 1, 0, node), &h, len(inner)), inner...), from)
	}
	for range 10 { // of other nodes each time
		node := 1000 + s.rng.Uint32()>>8
		report(node, decode.Tracked, 1000, node)
		report(node, decode.Dropped, 0, node)
	}
	for node := range uint32(20) { // that stay
		usual := 20_000 * math.Exp(.1*s.rng.NormFloat64())
		if (turn/30+int(node))%10 == 0 {
			usual *= 40
		}
		report(1+node, decode.Tracked, usual, 1+node)
	}
	for range 5 { // of random bytes, which no profile reads
		data := make([]byte, 60)
		for i := range data {
			data[i] = byte(s.rng.Uint32())
		}
		add(data, s.rng.Uint32())
	}
	return list
}

// faulty is a store that fails for some of what it gets, never with the same words.
type faulty struct {
	name string
	rng  *rand.Rand
}

func (w *faulty) Name() string { return w.name }
func (*faulty) Close() error   { return nil }
func (w *faulty) Write(_ context.Context, b *sink.Batch) error {
	switch w.rng.IntN(6) {
	case 0, 1:
		return fmt.Errorf("failed at %d", w.rng.Uint64())
	case 2:
		return &sink.PermanentError{Err: fmt.Errorf("refused at %d", w.rng.Uint64()), Rejected: min(1, len(b.Points))}
	}
	return nil
}

// live returns the heap in use, in bytes.
func live() int64 {
	runtime.GC()
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// creep is how many bytes tables grow by that were full but for their histograms: some 130 000 were measured. A record of 16 bytes that each new
// flow leaves behind is 700 000.
const creep = 256 << 10

// TestNothingCreeps lets a collector run for an hour of a virtual clock. Flows, hops, exporters and nodes are ever new, findings come and end,
// and stores fail, never in the same words. Once its tables are full, after ten minutes, its heap grows no further.
func TestNothingCreeps(t *testing.T) {
	testkit.Long(t)
	synctest.Test(t, func(t *testing.T) {
		const window = 10 * time.Second
		rng := rand.New(rand.NewPCG(1, 1))
		spoolConfig := spool.DefaultConfig()
		spoolConfig.Dir, spoolConfig.MaxBytes, spoolConfig.SegmentBytes, spoolConfig.Sync = t.TempDir(), 1<<20, 1<<16, "never"
		queue := sink.DefaultQueueConfig()
		queue.MaxBytes, queue.MaxBatches = 1<<20, 64
		page := web.DefaultConfig()
		page.HistoryWindows, page.MaxHops, page.MaxFlows, page.MaxExporters, page.MaxFindings = 30, 64, 64, 64, 64
		server, err := web.New(page, web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		c := newEngine(t, func(p *program) {
			p.Window, p.Shards, p.Corrections, p.CorrectionsBytes = window, 1, 2*time.Minute, 1<<20
			p.Flows.MemoryBytes, p.Flows.IdleTimeout, p.Flows.MaxHops, p.Flows.DailyFlows, p.Flows.TopFlows = 2<<20, 30*time.Second, 64, 100, 20
			p.Exporters.Tracking.MaxExporters = 64
			p.Events.MaxHops, p.Events.MaxFlows, p.Events.MaxDrops, p.Events.Warmup, p.Events.ForgetAfter = 64, 64, 64, 5, 20
			p.Alerts.MaxOpen, p.Alerts.Learning, p.Alerts.File = 64, true, t.TempDir()+"/alerts.yaml"
		}, Options{
			Seed: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Writers: []sink.WindowWriter{struct{ sink.WindowWriter }{server}}, // it serves nothing: what waits for a socket holds the clock
			Sources: []Source{{Name: "churn", Source: &churn{rng}}},
			Stores: []Store{
				{Name: "points", Writer: &faulty{"points", rand.New(rand.NewPCG(1, 2))}, Queue: queue, Spool: &spoolConfig, RefusedBytes: 1 << 20},
				{Name: "receiver", Writer: &faulty{"receiver", rand.New(rand.NewPCG(1, 3))}, Queue: queue, Alerts: true},
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		heap := func(after time.Duration) int64 {
			time.Sleep(after)
			synctest.Wait()
			return live()
		}
		full := heap(10*time.Minute + window/2) // between the ends of windows
		if now := heap(50 * time.Minute); now > full+creep {
			t.Errorf("%d bytes are in use after ten minutes, %d after an hour", full, now)
		} else {
			t.Logf("%d bytes are in use after ten minutes, %d after an hour", full, now)
		}
		cancel()
		<-done // with an error: what the stores failed for last is not stored
		summary := c.Summary(1, 1)
		left := strings.Join(c.Status().LeftOut, "\n")
		for _, limit := range []string{"exporters.tracking.max_exporters", "flows.max_hops", "flows.daily_flows", "events.max_drops", "alerts.max_open"} {
			if !strings.Contains(left, limit) {
				t.Errorf("%s leaves nothing out: %s", limit, left)
			}
		}
		if summary.Reports < 50_000 || len(summary.Findings) < 100 || summary.Malformed == 0 {
			t.Errorf("%d reports, %d findings, %d malformed", summary.Reports, len(summary.Findings), summary.Malformed)
		}
		runtime.KeepAlive(server)
	})
}
