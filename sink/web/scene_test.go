package web

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// scene generates the windows of a small network: a fat tree of 20 switches. One link congests, one switch goes silent
// for a while, and one flow changes its path. The same seed gives the same windows.
type scene struct {
	rng    *rand.Rand
	hops   []sceneHop
	flows  []sceneFlow
	length time.Duration
}

type sceneHop struct {
	node, egressIf int
	base, load     float64
}

type sceneFlow struct {
	key   decode.FlowKey
	path  []int // hops by index
	other []int
	rate  float64
}

// sceneTime is a fixed end of the scene, for tests that show no clock.
var sceneTime = time.Unix(1_800_000_000, 0)

// Where the scene's faults are, by window of the scene.
const (
	sceneHot      = 14 // the hop that congests, by index
	sceneSilent   = 9  // the node that reports nothing for a while
	sceneWindows  = 170
	sceneHotFrom  = 128
	sceneGapFrom  = 60
	sceneGapTo    = 84
	sceneChangeAt = 131
)

func newScene(seed uint64, nodes, ports int) *scene {
	s := &scene{rng: rand.New(rand.NewPCG(seed, 1)), length: 5 * time.Second}
	for n := range nodes {
		for p := range ports {
			s.hops = append(s.hops, sceneHop{n + 1, p + 1, 2500 * math.Exp(s.rng.NormFloat64()*0.35), 0.1 + 0.4*s.rng.Float64()})
		}
	}
	for i := range 26 {
		f := sceneFlow{
			key: mustFlow(fmt.Sprintf("10.%d.%d.2:%d > 10.%d.%d.3:%d %s", i%4, i%2, 32768+97*i, (i+2)%4, (i+1)%2, []int{443, 5201, 9000, 53}[i%4],
				[]string{"tcp", "tcp", "udp"}[i%3])),
			rate: 90000 / math.Pow(float64(i+1), 0.9),
		}
		for range []int{3, 5, 5}[i%3] {
			f.path = append(f.path, s.rng.IntN(len(s.hops)))
		}
		if i%2 == 1 {
			f.path[1] = sceneHot
		}
		f.other = append([]int(nil), f.path...)
		f.other[len(f.other)/2] = (f.other[len(f.other)/2] + 11) % len(s.hops)
		s.flows = append(s.flows, f)
	}
	return s
}

// window makes window i, which ends at end, without findings.
func (s *scene) window(i int, end time.Time) *sink.Window {
	w := &inference.Window{Start: end.Add(-s.length).UnixNano(), End: end.UnixNano()}
	wave := 1 + 0.35*math.Sin(float64(i)/17)
	for k, h := range s.hops {
		if h.node == sceneSilent && i >= sceneGapFrom && i < sceneGapTo {
			continue
		}
		heat := 1.0
		if k == sceneHot && i >= sceneHotFrom {
			heat = 9 + 30*(1-math.Exp(-float64(i-sceneHotFrom)/9))
		} else if k%13 == 5 && i%47 > 42 {
			heat = 3.5
		}
		p50 := h.base * wave * (1 + 0.1*s.rng.NormFloat64()) * math.Sqrt(heat)
		p99 := p50 * (2.1 + 0.5*s.rng.Float64()) * math.Sqrt(heat)
		queue := 1500 * h.load * wave * heat * heat * (0.5 + s.rng.Float64())
		reports := uint64(800 + s.rng.IntN(400))
		w.Reports += reports
		w.Hops = append(w.Hops, inference.HopStats{
			HopKey: h.key(), Count: reports,
			Latency:     inference.Summary{Count: reports, P50: uint64(p50), P90: uint64(p50 + (p99-p50)*0.6), P99: uint64(p99), Max: uint64(p99 * 1.4)},
			Queue:       inference.Summary{Count: reports, P50: uint64(max(0, queue*0.3-100)), P99: uint64(queue), Max: uint64(queue * 1.3)},
			Utilization: min(1, h.load*wave*math.Sqrt(heat)), HasUtilization: true,
		})
	}
	for k, f := range s.flows {
		path := f.path
		if k == 1 && i >= sceneChangeAt {
			path = f.other
		}
		stats := inference.FlowStats{Key: f.key, PathID: 0xa1}
		for _, hop := range path {
			h := s.hops[hop]
			p99 := h.base * wave * 2.3
			if hop == sceneHot && i >= sceneHotFrom {
				p99 *= 30
			}
			stats.Packets = max(stats.Packets, uint64(f.rate*(0.9+0.2*s.rng.Float64())))
			stats.Hops = append(stats.Hops, inference.FlowHop{
				HopKey: h.key(), Latency: inference.Summary{Count: 1, P50: uint64(p99 / 2.3), P99: uint64(p99)}, Queue: inference.Summary{Count: 1, P99: uint64(p99 / 3)},
			})
		}
		w.Flows = append(w.Flows, stats)
		if k == 1 && i == sceneChangeAt {
			w.Paths = append(w.Paths, inference.PathChange{Time: w.End, Flow: f.key, From: s.hopKeys(f.path), To: s.hopKeys(f.other), Changes: 1, Packets: 412_000})
		}
	}
	for n := 1; n <= min(20, s.hops[len(s.hops)-1].node); n++ {
		if n == sceneSilent && i >= sceneGapFrom && i < sceneGapTo || n == 17 && i > sceneWindows-8 {
			continue
		}
		lost := int64(0)
		if n == 5 && i > 100 {
			lost = int64(s.rng.IntN(60))
		}
		w.Exporters = append(w.Exporters, inference.ExporterStats{
			ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, byte(n)}), Node: uint32(n)},
			Reports:     uint64(4000 + s.rng.IntN(500)), Lost: lost, Reordered: uint64(s.rng.IntN(3)), Sequenced: true,
		})
	}
	return sink.NewWindow("here", w, nil)
}

func (h *sceneHop) key() inference.HopKey {
	return inference.HopKey{Node: uint32(h.node), EgressIf: uint32(h.egressIf)}
}

func (s *scene) hopKeys(path []int) (keys []inference.HopKey) {
	for _, h := range path {
		keys = append(keys, s.hops[h].key())
	}
	return keys
}

// mustFlow reads the text of a flow in a test.
func mustFlow(text string) decode.FlowKey {
	k, err := decode.ParseFlow(text)
	if err != nil {
		panic(err)
	}
	return k
}

// fill writes all windows of the scene, the last of which ends at now.
func (s *scene) fill(srv *Server, windows int, now time.Time) {
	for i := range windows {
		write(srv, s.window(sceneWindows-windows+i, now.Add(-time.Duration(windows-1-i)*s.length)))
	}
}

// write passes a window to srv, which never refuses it.
func write(srv *Server, w *sink.Window) {
	if err := srv.WriteWindow(context.Background(), w); err != nil {
		panic(err)
	}
}

// emit hands srv a window that has nothing but findings.
func emit(srv *Server, list []inference.Finding) {
	write(srv, sink.NewWindow("here", &inference.Window{}, list))
}

// findings of the scene: two open ones, and some that ended.
func (s *scene) findings(now time.Time) []inference.Finding {
	at := func(window int) int64 { return now.Add(-time.Duration(sceneWindows-1-window) * s.length).UnixNano() }
	hot := s.hops[sceneHot]
	key := mustFlow("10.1.1.2:32865 > 10.3.0.3:5201 tcp")
	return []inference.Finding{
		{ID: 11, Kind: inference.HighLatency, Severity: inference.Critical, Start: at(sceneHotFrom + 1), Updated: at(169), Node: uint32(hot.node), EgressIf: uint32(hot.egressIf),
			Value: 412000, Baseline: 6100, Text: "p99 latency is 412 µs, 67 times the median of the last 120 windows (6.1 µs)."},
		{ID: 12, Kind: inference.HighQueue, Severity: inference.Warning, Start: at(sceneHotFrom + 3), Updated: at(169), Node: uint32(hot.node), EgressIf: uint32(hot.egressIf),
			Value: 1.2e6, Baseline: 900, Text: "Queue occupancy p99 is 1.2 MB; the usual range ends at 2.1 KB."},
		{ID: 13, Kind: inference.ExporterSilence, Severity: inference.Warning, Start: at(164), Updated: at(164), Node: 17,
			Exporter: decode.AddrFrom(netip.MustParseAddr("192.0.2.17")), Text: "No report for 30 s; it used to send 860 a second."},
		{ID: 9, Kind: inference.PathChanged, Severity: inference.Info, Start: at(sceneChangeAt), Updated: at(sceneChangeAt), End: at(sceneChangeAt + 1), Flow: key,
			Text: "The flow left node 13 for node 16 after 412 000 reports."},
		{ID: 5, Kind: inference.ExporterSilence, Severity: inference.Critical, Start: at(sceneGapFrom + 2), Updated: at(sceneGapTo), End: at(sceneGapTo), Node: sceneSilent,
			Exporter: decode.AddrFrom(netip.MustParseAddr("192.0.2.9")), Text: "No report for 2 minutes."},
		{ID: 4, Kind: inference.HighLatency, Severity: inference.Warning, Start: at(43), Updated: at(46), End: at(47), Node: uint32(s.hops[5].node), EgressIf: uint32(s.hops[5].egressIf),
			Value: 31000, Baseline: 8000, Text: "p99 latency is 31 µs, 3.9 times the median of the last 120 windows (8.0 µs)."},
	}
}

// sceneDeps answer for the collector.
func sceneDeps(now time.Time) Deps {
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) })
	}
	return Deps{
		Status: func() Status {
			return Status{
				Version: "v0.1.0", Start: now.Add(-26 * time.Hour), Window: 5 * time.Second, ReportsPerSecond: 16214.4,
				Coverage: &inference.Coverage{Seen: 80, Judged: 80, MinRecords: 5, Warmup: 60, Window: 5 * time.Second},
				Sources:  []Source{{Kind: "udp", Address: "127.0.0.1:32766", Detail: "telemetry report 0.5, 1.0 and 2.0", Frames: 12431009}},
				Settings: []Setting{
					{"Window", "5 s"}, {"Flow memory", "256 MB"}, {"Stores", "influx, parquet, web"}, {"Profile", "auto"},
				},
			}
		},
		Ledger: func() []sink.Balance {
			flight := map[string]int64{"ring": 0, "shard-queue": 128, "window": 61350, "sink-queue": 0, "spool": 0}
			drops := map[string]int64{"kernel": 0, "ring": 0, "malformed": 17, "foreign": 0, "shard-queue": 0, "sink-queue": 0, "spool": 0, "rejected": 0}
			return []sink.Balance{
				{Sink: "influx", Received: 12431009, Stored: 12369514, InFlight: flight, Dropped: drops},
				{Sink: "web", Received: 12431009, Stored: 12369514, InFlight: flight, Dropped: drops},
			}
		},
		Metrics: text("hopscope_up 1\n"), Health: text("ok\n"), Ready: text("ok\n"),
	}
}
