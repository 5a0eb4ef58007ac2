package parquet

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// rawReport is a report with some hops.
func rawReport(i, hops int) *decode.Report {
	r := &decode.Report{
		Time: base + int64(i), Format: decode.TelemetryReport, Kind: decode.KindStack, Version: decode.V20, Flags: decode.Tracked | decode.Congested,
		Has:      decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq | decode.HasFlow | decode.HasPorts,
		Exporter: decode.AddrFrom(netip.MustParseAddr("192.0.2.1")), NodeID: 7, HWID: 2, Seq: uint32(i),
		Flow: decode.FlowKey{
			Src: decode.AddrFrom(netip.MustParseAddr("2001:db8::1")), Dst: decode.AddrFrom(netip.MustParseAddr("::ffff:10.0.0.1")),
			SrcPort: 443, DstPort: 50000, Proto: 6, IPVersion: 6,
		},
	}
	for h := range hops {
		r.Hops = append(r.Hops, decode.Hop{
			Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency | decode.HopDeqOccupancy | decode.HopEgressTime, NodeID: uint32(100 + h),
			EgressIf: uint16(h), Latency: uint32(i), DeqOccupancy: 9, EgressTime: 1 << 62,
		})
	}
	return r
}

func startRaw(t *testing.T, c Config, policy sink.Policy, change func(*rawWriter)) *rawWriter {
	t.Helper()
	r, err := newRaw(c, policy)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	r.Start()
	return r
}

func TestRaw(t *testing.T) {
	dir := t.TempDir()
	r := startRaw(t, testConfig(dir), sink.Drop, nil)
	r.AppendReport(rawReport(1, 2))
	none := rawReport(2, 0)
	none.Has, none.Flags = decode.HasDropReason|decode.HasPacketID, 0
	none.DropReason, none.PacketID, none.Kind = 71, 9, decode.KindDrop
	r.AppendReport(none)
	bad := rawReport(3, 1)
	bad.Fail(decode.INTMD, "hop metadata", 40, decode.Short)
	bad.Time += oneHour
	r.AppendReport(bad)
	// The hour of the first two is over; the rest is for Close.
	testkit.Until(t, "the first hour is written", func() bool { return r.Stats().Rows >= 3 })
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := readAll(t, dir, "raw")
	if names := files(t, dir, "raw"); len(names) != 2 || filepath.Base(names[1]) != "2026-11-21T03-000.parquet" || len(rows) != 4 {
		t.Fatalf("files %v, rows %v", names, rows)
	}
	common := row{
		"time": base + 1, "exporter": "192.0.2.1", "node_id": int64(7), "hw_id": int64(2), "seq": int64(1), "format": "telemetry-report",
		"kind": "int-stack", "version": "2.0", "flags": "congested,tracked", "src": "2001:db8::1", "dst": "::ffff:10.0.0.1", "proto": int64(6),
		"src_port": int64(443), "dst_port": int64(50000), "hops": int64(2), "hop": int64(1), "hop_node_id": int64(101), "egress_if": int64(1),
		"latency": int64(1), "deq_occupancy": int64(9), "egress_time": int64(1 << 62),
	}
	if !reflect.DeepEqual(rows[1], common) {
		t.Errorf("row 1 = %v\nwant    %v", rows[1], common)
	}
	empty := row{
		"time": base + 2, "exporter": "192.0.2.1", "format": "telemetry-report", "kind": "drop", "version": "2.0", "packet_id": int64(9),
		"drop_reason": int64(71), "hops": int64(0),
	}
	if !reflect.DeepEqual(rows[2], empty) {
		t.Errorf("row 2 = %v\nwant    %v", rows[2], empty)
	}
	if s, _ := rows[3]["error"].(string); !strings.Contains(s, "hop metadata") {
		t.Errorf("row 3 = %v", rows[3])
	}
	if st := r.Stats(); st.reports != 3 || st.Rows != 4 || st.files != 2 || st.Dropped != 0 || st.rowsLost != 0 || st.waitingRows != 0 {
		t.Errorf("Stats = %+v", st)
	}
	r.AppendReport(bad)
	if st := r.Stats(); st.Dropped != 1 {
		t.Errorf("Stats after Close = %+v", st)
	}

	out, err := exec.Command(testkit.Python(t), "-c", `
import sys, duckdb
print(duckdb.sql(f"select hop_node_id, count(*), max(latency) from '{sys.argv[1]}/raw/*.parquet' where hop is not null group by 1 order by 1").fetchall())
`, dir).CombinedOutput()
	if want := "[(100, 2, 3), (101, 1, 1)]\n"; err != nil || string(out) != want {
		t.Errorf("DuckDB: %s %v, want %s", out, err, want)
	}
}

// Several goroutines, small tables: with Block nothing is lost, with Drop every report is in a file or counted.
func TestRawBounded(t *testing.T) {
	for _, policy := range []sink.Policy{sink.Drop, sink.Block} {
		dir := t.TempDir()
		c := testConfig(dir)
		c.RawMemoryBytes = 1 << 20
		r := startRaw(t, c, policy, nil)
		const workers = 4
		each := testkit.Rounds(4000, 4000)
		var wg sync.WaitGroup
		for n := range workers {
			wg.Go(func() {
				for i := range each / 10 {
					var b []*decode.Report
					for j := range 10 {
						b = append(b, rawReport(n*each+i*10+j, 3))
					}
					r.AppendReports(b)
				}
			})
		}
		wg.Wait()
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := r.Stats()
		rows := readAll(t, dir, "raw")
		if st.reports+st.Dropped != uint64(workers*each) || uint64(len(rows)) != st.reports*3 || st.Rows != uint64(len(rows)) {
			t.Errorf("policy %d: %d rows, %+v", policy, len(rows), st)
		}
		if policy == sink.Block && st.Dropped != 0 {
			t.Errorf("%d dropped", st.Dropped)
		}
		seen := map[string]bool{}
		for _, row := range rows {
			seen[fmt.Sprint(row["seq"], row["hop"])] = true
		}
		if len(seen) != len(rows) {
			t.Errorf("policy %d: %d rows, %d different", policy, len(rows), len(seen))
		}
	}
}

// The disk takes nothing while ten times as many reports come as fit in memory. In the end each report is in a file or
// counted as dropped.
func TestRawOverrun(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.RawMemoryBytes = 1 << 20
	goes := make(chan struct{})
	r := startRaw(t, c, sink.Drop, func(r *rawWriter) {
		create := r.folder.create
		r.folder.create = func(path string) (diskFile, error) {
			<-goes
			return create(path)
		}
	})
	sent := uint64(0)
	for st := r.Stats(); st.Dropped < 10*st.reports || st.Dropped == 0; st = r.Stats() {
		for range 1000 {
			r.AppendReport(rawReport(int(sent), 3))
			sent++
		}
	}
	if taken, dropped := r.Counts(); taken == 0 || taken+dropped != sent || dropped < 10*taken {
		t.Errorf("%d reports are taken and %d dropped, of %d", taken, dropped, sent)
	}
	close(goes)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken, dropped := r.Counts()
	if rows := readAll(t, dir, "raw"); uint64(len(rows)) != 3*taken || taken+dropped != sent {
		t.Errorf("%d rows of %d reports, and %d are dropped, of %d", len(rows), taken, dropped, sent)
	}
}

func TestRawDiskFull(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.RawMemoryBytes = 1 << 20
	d := &fullDisk{}
	r := startRaw(t, c, sink.Drop, func(r *rawWriter) { d.open = r.folder.create; r.folder.create = d.create })
	for i := range 20_000 {
		r.AppendReport(rawReport(i, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := r.Close(ctx)
	st := r.Stats()
	if err == nil || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) || st.Dropped == 0 || st.rowsLost != st.reports || st.reports+st.Dropped != 20_000 {
		t.Errorf("Close = %v, %+v", err, st)
	}
	if st.lastError == "" || len(files(t, dir, "raw")) != 0 {
		t.Errorf("LastError %q, files %v", st.lastError, files(t, dir, "raw"))
	}
}
