package inference

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// The state of an Admission as bytes, which only the version that wrote them reads:
//
//	state:  version<1b> day<uvarint> folded hops<uvarint> flows<uvarint> rest<uvarint> hops nodes flows exporters
//	places: count<uvarint> { key seen<varint> }, ordered by key; seen is in ns since the day began
//
// Keys are written as in a partial: a hop is its node and its interface, a node a uvarint, a flow 38 bytes, and an exporter
// its address, its node and its hardware.
const admissionVersion = 1

// AdmissionError says at which byte of the state of an [Admission] something is wrong, and what.
type AdmissionError struct {
	Field  string
	Offset int
	Err    error // ErrTruncated, ErrVersion or ErrCorrupt
}

func (e *AdmissionError) Error() string {
	return fmt.Sprintf("state of admitted series: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *AdmissionError) Unwrap() error { return e.Err }

// AppendState appends which series have begun, for [Admission.ReadState]: some 45 bytes for each flow, 30 for each
// exporter and 15 for each hop.
func (a *Admission) AppendState(dst []byte) []byte {
	w := writer{b: append(dst, admissionVersion), base: a.dayBegan()}
	for _, n := range [...]uint64{uint64(a.day), a.foldedHops, a.foldedFlows, a.rest} {
		w.uint(n)
	}
	appendPlaces(&w, &a.hops, HopKey.Compare, w.place)
	appendPlaces(&w, &a.nodes, cmp.Compare[uint32], func(n uint32) { w.uint(uint64(n)) })
	appendPlaces(&w, &a.flows, compareFlows, func(k decode.FlowKey) { w.flow(&k) })
	appendPlaces(&w, &a.exporters, ExporterKey.Compare, func(k ExporterKey) {
		w.b = append(w.b, k.Addr[:]...)
		w.uint(uint64(k.Node))
		w.b = append(w.b, k.HWID)
	})
	return w.b
}

// ReadState replaces what is known of series with what [Admission.AppendState] wrote; the limits stay. From then on it
// admits what the one that wrote would have. If b was written with higher limits, those that were seen last keep their
// places. If b is no such state, which is an [AdmissionError], the admission stays as it is. The memory that it takes is
// in proportion to the length of b, which is not kept.
func (a *Admission) ReadState(b []byte) error {
	fresh := NewAdmission(AdmissionLimits{a.hops.max, a.flows.max, a.exporters.max})
	r := reader{b: b}
	fresh.read(&r)
	if r.err != nil {
		var e *PartialError
		errors.As(r.err, &e)
		return &AdmissionError{e.Field, e.Offset, e.Err}
	}
	*a = *fresh
	return nil
}

func (a *Admission) read(r *reader) {
	if v := r.byte("version"); r.err == nil && v != admissionVersion {
		r.at = 0
		r.fail("version", ErrVersion)
	}
	at := r.at
	day := r.uint("day")
	if day > uint64(math.MaxInt64/int64(24*time.Hour)) {
		r.at = at
		r.fail("day", ErrCorrupt)
	}
	a.day, a.foldedHops, a.foldedFlows, a.rest = int64(day), r.uint("folded hops"), r.uint("folded flows"), r.uint("folded others")
	r.base = a.dayBegan()
	readPlaces(r, &a.hops, "hops", HopKey.Compare, 3, func() HopKey {
		at := r.at
		k := r.place("hop")
		r.ordered("hop", at, !k.Other) // which needs no place
		return k
	})
	readPlaces(r, &a.nodes, "nodes", cmp.Compare[uint32], 2, func() uint32 { return r.id("node") })
	readPlaces(r, &a.flows, "flows", compareFlows, flowBytes+1, func() decode.FlowKey { return r.flow("flow") })
	readPlaces(r, &a.exporters, "exporters", ExporterKey.Compare, len(decode.Addr{})+3, func() ExporterKey {
		return ExporterKey{Addr: r.addr("exporter"), Node: r.id("exporter node"), HWID: r.byte("exporter hardware")}
	})
	if r.at != len(r.b) {
		r.fail("end", ErrCorrupt)
	}
}

// dayBegan is when the present day began.
func (a *Admission) dayBegan() int64 { return a.day * int64(24*time.Hour) }

func compareFlows(a, b decode.FlowKey) int { return a.Compare(&b) }

// place is a member of a set of places.
type place[K any] struct {
	key K
	at  int64
}

func appendPlaces[K comparable](w *writer, p *places[K], compare func(a, b K) int, key func(K)) {
	list := make([]place[K], 0, len(p.seen))
	for k, at := range p.seen {
		list = append(list, place[K]{k, at})
	}
	slices.SortFunc(list, func(a, b place[K]) int { return compare(a.key, b.key) })
	w.uint(uint64(len(list)))
	for _, x := range list {
		key(x.key)
		w.b = binary.AppendVarint(w.b, x.at-w.base)
	}
}

// readPlaces reads a set whose members take size bytes or more.
func readPlaces[K comparable](r *reader, p *places[K], field string, compare func(a, b K) int, size int, key func() K) {
	list := make([]place[K], 0, r.count(field, math.MaxInt, size))
	for range cap(list) {
		at := r.at
		x := place[K]{key: key()}
		x.at = r.time(field)
		if !r.ordered(field, at, len(list) == 0 || compare(list[len(list)-1].key, x.key) < 0) {
			return
		}
		list = append(list, x)
	}
	if len(list) > p.max {
		slices.SortStableFunc(list, func(a, b place[K]) int { return cmp.Compare(b.at, a.at) })
		list = list[:max(p.max, 0)]
	}
	p.seen = make(map[K]int64, len(list))
	for _, x := range list {
		p.seen[x.key] = x.at
	}
}
