package parquet

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/parquet"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sink"
)

// Raw keeps the raw stream: one row a hop of every report, and one row for a report without hops, in the dataset raw.
// Values are as on the wire, in the device's units; what a device did not report, or marked invalid, is null.
//
// Reports are appended to one table while another is being written. Rows are in memory until then and in no spool: a
// killed process loses up to Config.RotateInterval of them. The loss ledger, which follows the series, does not count
// them; [rawStats] does.
type rawWriter struct {
	conf   Config
	policy sink.Policy
	folder *folder
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed sync.Cond // ready became nil, or the end
	active  *table
	hour    hour
	began   time.Time
	ready   *part // to be written
	spare   *table
	closed  bool
	addrs   map[addrKey]string
	flags   map[decode.Flags]string
	stats   rawStats
	wake    chan struct{}
}

// rawStats are totals since the start.
type rawStats struct {
	reports       uint64 // taken
	Dropped       uint64 // reports for which there was no room
	rowsLost      uint64 // taken, but the disk refused them until the end
	Rows          uint64 // in files
	files         uint64
	Bytes         uint64
	waitingRows   int // now in memory
	leftovers     int // unfinished files of an earlier process that were removed at the start
	lastError     string
	lastErrorTime time.Time
}

// rawNumbers are the columns of the raw dataset that are numbers of a report, by their place.
var rawNumbers = [...]struct{ at, column int }{
	{rawNodeID, decode.ColNodeID}, {rawHWID, decode.ColHWID}, {rawSeq, decode.ColSeq}, {rawProto, decode.ColProto}, {rawSrcPort, decode.ColSrcPort},
	{rawDstPort, decode.ColDstPort}, {rawPacketID, decode.ColPacketID}, {rawDropReason, decode.ColDropReason},
}

// rawSet are the columns of the raw dataset: those below, and behind them the values of a hop.
var rawSet = func() *dataset {
	columns := []column{
		rawTime: {"time", moment, true}, rawExporter: {"exporter", text, true}, rawFormat: {"format", text, true}, rawKind: {"kind", text, true},
		rawVersion: {"version", text, true}, rawFlags: {"flags", text, false}, rawError: {"error", text, false}, rawSrc: {"src", text, false},
		rawDst: {"dst", text, false}, rawHops: {"hops", integer, false}, rawHop: {"hop", integer, false},
	}
	for _, n := range rawNumbers {
		columns[n.at] = column{decode.ReportColumns[n.column].Name, integer, false}
	}
	for _, c := range decode.HopColumns[:decode.HopTimeBits] {
		columns = append(columns, column{c.Name, integer, false})
	}
	columns[rawFirstHopValue].name = "hop_node_id" // node_id is that of the report
	return newDataset("raw", columns)
}()

const (
	rawTime = iota
	rawExporter
	rawNodeID
	rawHWID
	rawSeq
	rawFormat
	rawKind
	rawVersion
	rawFlags
	rawError
	rawSrc
	rawDst
	rawProto
	rawSrcPort
	rawDstPort
	rawPacketID
	rawDropReason
	rawHops
	rawHop
	rawFirstHopValue
)

// newRaw opens the directory. Nothing runs before Start. With [sink.Drop] a report that finds no room is dropped and
// counted, with [sink.Block] AppendReports waits.
func newRaw(conf Config, policy sink.Policy) (*rawWriter, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	f, err := openFolder(conf.Dir, "lock-raw")
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	r := &rawWriter{
		conf: conf, policy: policy, folder: f, active: newTable(rawSet), spare: newTable(rawSet),
		addrs: map[addrKey]string{}, flags: map[decode.Flags]string{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	r.changed.L = &r.mu
	if r.stats.leftovers, err = f.removeLeftovers(rawSet.name); err != nil {
		f.lock.Close()
		return nil, fmt.Errorf("parquet: %w", err)
	}
	return r, nil
}

// Start begins to write files. Close ends it.
func (r *rawWriter) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx)
}

var _ sink.ReportWriter = (*rawWriter)(nil)

// Counts implements [sink.ReportWriter].
func (r *rawWriter) Counts() (taken, dropped uint64) {
	st := r.Stats()
	return st.reports, st.Dropped
}

// AppendReport is AppendReports for one.
func (r *rawWriter) AppendReport(report *decode.Report) { r.AppendReports([]*decode.Report{report}) }

// AppendReports copies reports. It may be called by several goroutines; a batch takes the lock once.
func (r *rawWriter) AppendReports(reports []*decode.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range reports {
		if !r.room(report.Time) {
			r.stats.Dropped++
			continue
		}
		r.append(report)
		r.stats.reports++
	}
}

// room makes sure that the active table takes a row of time ns.
func (r *rawWriter) room(ns int64) bool {
	for {
		switch {
		case r.closed:
			return false
		case r.active.rows == 0:
			r.hour, r.began = hourOf(ns), time.Now()
			return true
		case r.active.bytes < r.conf.RawMemoryBytes && hourOf(ns) == r.hour:
			return true
		case r.handOver():
		case r.policy == sink.Drop:
			return false
		default:
			r.changed.Wait()
		}
	}
}

// handOver passes the active table to the writing goroutine, if that is idle.
func (r *rawWriter) handOver() bool {
	if r.ready != nil || r.spare == nil || r.active.rows == 0 {
		return false
	}
	r.ready = &part{table: r.active, hour: r.hour}
	r.active, r.spare = r.spare, nil
	clear(r.addrs)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// addrKey is an address as its packet has it: an IPv6 packet may carry a mapped IPv4 address.
type addrKey struct {
	addr decode.Addr
	ipv6 bool
}

func (r *rawWriter) addr(a decode.Addr, ipv6 bool) string {
	s, ok := r.addrs[addrKey{a, ipv6}]
	if !ok {
		key := decode.FlowKey{Src: a}
		if ipv6 {
			key.IPVersion = 6
		}
		s = key.SrcString()
		r.addrs[addrKey{a, ipv6}] = s
		r.active.bytes += 64
	}
	return s
}

// append appends the rows of one report. What is the same in all of them is looked up once.
func (r *rawWriter) append(report *decode.Report) {
	t := r.active
	common := rawTexts{
		exporter: t.intern(r.addr(report.Exporter, false)),
		format:   t.intern(report.Format.String()),
		kind:     t.intern(report.Kind.String()),
		version:  t.intern(report.Version.String()),
	}
	if report.Flags != 0 {
		common.flags = t.intern(r.flagsText(report.Flags))
	}
	if err := report.Error(); err != nil {
		common.err = t.intern(err.Error())
	}
	if report.Has&decode.HasFlow != 0 {
		ipv6 := report.Flow.IPVersion == 6
		common.src, common.dst = t.intern(r.addr(report.Flow.Src, ipv6)), t.intern(r.addr(report.Flow.Dst, ipv6))
	}
	have := report.Has.Columns()
	var numbers decode.ReportNumbers
	report.Numbers(have, &numbers)
	for i := range report.Hops {
		t.appendReport(report, &common, have, &numbers)
		t.appendHop(&report.Hops[i], i)
		t.endRow()
	}
	if len(report.Hops) == 0 {
		t.appendReport(report, &common, have, &numbers)
		t.endRow()
	}
}

// rawTexts are the texts of a report; nil is null.
type rawTexts struct {
	exporter, format, kind, version, flags, err, src, dst parquet.ByteArray
}

func (t *table) appendReport(report *decode.Report, common *rawTexts, have decode.Columns, numbers *decode.ReportNumbers) {
	t.setInt(rawTime, report.Time)
	t.setBytes(rawExporter, common.exporter)
	for _, n := range rawNumbers {
		if have>>n.column&1 != 0 {
			t.setInt(n.at, int64(numbers[n.column]))
		}
	}
	t.setBytes(rawFormat, common.format)
	t.setBytes(rawKind, common.kind)
	t.setBytes(rawVersion, common.version)
	optional := func(col int, b parquet.ByteArray) {
		if b != nil {
			t.setBytes(col, b)
		}
	}
	optional(rawFlags, common.flags)
	optional(rawError, common.err)
	optional(rawSrc, common.src)
	optional(rawDst, common.dst)
	t.setInt(rawHops, int64(len(report.Hops)))
}

func (t *table) appendHop(hop *decode.Hop, position int) {
	t.setInt(rawHop, int64(position))
	var v decode.HopNumbers
	hop.Numbers(hop.Has, &v)
	for u := uint32(hop.Has & (1<<decode.HopTimeBits - 1)); u != 0; u &= u - 1 {
		c := bits.TrailingZeros32(u)
		t.setInt(rawFirstHopValue+c, int64(v[c]))
	}
}

func (r *rawWriter) flagsText(f decode.Flags) string {
	s, ok := r.flags[f]
	if !ok {
		s = strings.Join(f.AppendNames(nil), ",")
		r.flags[f] = s
	}
	return s
}

// run writes the tables that are handed over, and every Config.RotateInterval the rows gathered so far.
func (r *rawWriter) run(ctx context.Context) {
	defer close(r.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		r.mu.Lock()
		if r.active.rows > 0 && (r.closed || time.Since(r.began) >= r.conf.RotateInterval) {
			r.handOver()
		}
		p, closed := r.ready, r.closed
		r.mu.Unlock()
		if p != nil {
			r.write(p)
		} else if closed {
			return
		}
		if p == nil || r.failing(p) {
			select {
			case <-r.wake:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (r *rawWriter) failing(p *part) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready == p
}

// write writes one table and makes it the spare one. If it fails the table stays ready.
func (r *rawWriter) write(p *part) {
	bytes, err := r.folder.write(p.table, p.hour, r.conf.RowGroupRows)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.stats.lastError, r.stats.lastErrorTime = err.Error(), time.Now()
		if bytes == 0 {
			return
		}
	}
	r.stats.files++
	r.stats.Rows += uint64(p.rows)
	r.stats.Bytes += uint64(bytes)
	p.clear()
	r.ready, r.spare = nil, p.table
	r.changed.Broadcast()
}

// Stats may be called at any time.
func (r *rawWriter) Stats() rawStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.waitingRows = r.active.rows
	if r.ready != nil {
		s.waitingRows += r.ready.rows
	}
	return s
}

// Close takes no more reports, writes the remaining ones until ctx ends, and unlocks the directory. Rows that the disk
// refused until then are lost and counted.
func (r *rawWriter) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errors.New("parquet: closed twice")
	}
	r.closed = true
	r.changed.Broadcast()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	if r.cancel != nil {
		stop := context.AfterFunc(ctx, r.cancel)
		<-r.done
		stop()
		r.cancel()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := r.active.rows
	if r.ready != nil {
		lost += r.ready.rows
	}
	r.stats.rowsLost += uint64(lost)
	err := r.folder.lock.Close()
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("parquet: %d raw rows were not written: %s", lost, r.stats.lastError))
	}
	return err
}
