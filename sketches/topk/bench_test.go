package topk

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// streamSummary is the paper's structure: counters in a list ordered by count, increased by one at a time. Counters with
// the same count form a bucket, so that an increase moves a counter to the next bucket in constant time.
type streamSummary struct {
	where    map[uint64]int32
	counters []summaryCounter
	buckets  []summaryBucket
	free     []int32
	first    int32 // bucket with the smallest count
}

type summaryCounter struct {
	key, count, err uint64
	bucket          int32
	prev, next      int32 // in the bucket
}

type summaryBucket struct {
	count      uint64
	head       int32
	prev, next int32
}

func newStreamSummary(m int) *streamSummary {
	s := &streamSummary{where: make(map[uint64]int32, m), counters: make([]summaryCounter, 0, m), buckets: make([]summaryBucket, m+1), first: -1}
	for i := range s.buckets {
		s.free = append(s.free, int32(i))
	}
	return s
}

func (s *streamSummary) add(key uint64) {
	c, ok := s.where[key]
	switch {
	case ok:
	case len(s.counters) < cap(s.counters):
		c = int32(len(s.counters))
		s.counters = append(s.counters, summaryCounter{key: key, bucket: -1})
		s.where[key] = c
	default:
		c = s.buckets[s.first].head
		it := &s.counters[c]
		delete(s.where, it.key)
		it.key, it.err = key, it.count
		s.where[key] = c
	}
	s.increase(c)
}

func (s *streamSummary) increase(c int32) {
	it := &s.counters[c]
	it.count++
	old := it.bucket
	after := s.first // the bucket that may hold the new count
	prev := int32(-1)
	if old >= 0 {
		prev, after = old, s.buckets[old].next
	}
	if after < 0 || s.buckets[after].count != it.count {
		b := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		s.buckets[b] = summaryBucket{count: it.count, head: -1, prev: prev, next: after}
		if prev >= 0 {
			s.buckets[prev].next = b
		} else {
			s.first = b
		}
		if after >= 0 {
			s.buckets[after].prev = b
		}
		after = b
	}
	if old >= 0 {
		if it.prev >= 0 {
			s.counters[it.prev].next = it.next
		} else {
			s.buckets[old].head = it.next
		}
		if it.next >= 0 {
			s.counters[it.next].prev = it.prev
		}
		if b := s.buckets[old]; b.head < 0 {
			if b.prev >= 0 {
				s.buckets[b.prev].next = b.next
			} else {
				s.first = b.next
			}
			if b.next >= 0 {
				s.buckets[b.next].prev = b.prev
			}
			s.free = append(s.free, old)
		}
	}
	it.bucket, it.prev, it.next = after, -1, s.buckets[after].head
	if it.next >= 0 {
		s.counters[it.next].prev = c
	}
	s.buckets[after].head = c
}

// Keys of a heavy-tailed stream, and keys that all come once, which is the worst case: every one replaces another.
func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	next := zipf(r, 1.1, 1_000_000)
	tail, once := make([]uint64, 1<<16), make([]uint64, 1<<16)
	for i := range tail {
		tail[i], once[i] = next(), r.Uint64()
	}
	for _, stream := range []struct {
		name string
		keys []uint64
	}{{"zipf", tail}, {"once", once}} {
		for _, m := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/m=%d/list", stream.name, m), func(b *testing.B) {
				b.ReportAllocs()
				l, i := New[uint64](m), 0
				for b.Loop() {
					k := stream.keys[i&0xffff]
					l.Add(hash(k), &k, 1)
					i++
				}
			})
			b.Run(fmt.Sprintf("%s/m=%d/stream-summary", stream.name, m), func(b *testing.B) {
				b.ReportAllocs()
				s, i := newStreamSummary(m), 0
				for b.Loop() {
					s.add(stream.keys[i&0xffff])
					i++
				}
			})
		}
	}
}
