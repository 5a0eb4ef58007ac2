package decode

import (
	"reflect"
	"testing"
	"unsafe"
)

// mostReport is the most bytes that a report has: each datagram empties one, and a batch is read and written as a whole.
const mostReport = 360

func TestReportSize(t *testing.T) {
	if n := unsafe.Sizeof(Report{}); n > mostReport {
		t.Errorf("a report has %d bytes, want at most %d: what few reports have belongs to Rare", n, mostReport)
	}
}

// spoil fills in every rare part of a report.
func spoil(r *Report) {
	x := r.AddRare()
	x.Inner = FlowKey{SrcPort: 1}
	x.Template = &Template{ID: 300}
	r.GrowCounts(3)[2].TxPackets = 7
	x.Histogram = Histogram{Of: HopLatency, Buckets: append(x.Histogram.Buckets, Bucket{Count: 1})}
	x.Counters = Counters{Has: CountInPackets, InPackets: 9}
	r.AddTraffic().Octets = 5
	p := r.AddProbes()
	p.Sent, p.Delays = 3, append(p.Delays, DelayCount{1, 2})
	x.IOAM.Has = IOAMSeq
	x.IOAM.GrowNodes(2)[1].HopLimit = 64
}

// TestRareReuse holds that a report that is used again has no rare parts, gives empty ones, and allocates none.
func TestRareReuse(t *testing.T) {
	var b Batch
	shape := &Shape{Blocks: func([]Hop, []byte, int) {}}
	short := Lazy{Shape: shape}
	next := map[string]func() *Report{
		"Next":  func() *Report { b.Reset(); return b.Next() },
		"Shape": func() *Report { short.expanded = false; return short.Report() },
	}
	for name, next := range next {
		spoil(next())
		for range 3 { // also where a use between has none
			if r := next(); r.Rare != nil {
				t.Fatalf("%s: %+v is left", name, r.Rare)
			}
		}
		x := *next().AddRare()
		if len(x.Counts)+len(x.Histogram.Buckets)+len(x.IOAM.Nodes)+len(x.Probes.Delays)+len(x.Probes.Way) != 0 {
			t.Errorf("%s: %+v, want empty lists", name, x)
		}
		x.Counts, x.Histogram.Buckets, x.IOAM.Nodes, x.Probes.Delays, x.Probes.Way = nil, nil, nil, nil, nil
		if want := (Rare{Traffic: &Traffic{}, Probes: &ProbeCounts{}}); !reflect.DeepEqual(x, want) {
			t.Errorf("%s: AddRare = %+v, want %+v", name, x, want)
		}
		if n := testing.AllocsPerRun(100, func() {
			r := next()
			r.AddRare()
			r.GrowCounts(3)
			r.AddTraffic()
			r.AddProbes()
			r.Rare.IOAM.GrowNodes(2)
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// TestRareIsBounded holds that one report with long lists does not keep their memory for good.
func TestRareIsBounded(t *testing.T) {
	var r Report
	r.GrowCounts(KeptHops + 1)
	x := r.AddRare()
	x.Histogram.Buckets = make([]Bucket, KeptBuckets+1)
	x.IOAM.GrowNodes(KeptHops + 1)
	r.Reset()
	if x = r.AddRare(); cap(x.Counts) > KeptHops || cap(x.Histogram.Buckets) != 0 || cap(x.IOAM.Nodes) != 0 {
		t.Errorf("%d counts, %d buckets and %d nodes are kept", cap(x.Counts), cap(x.Histogram.Buckets), cap(x.IOAM.Nodes))
	}
}
