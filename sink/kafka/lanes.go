package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/inference/fleet"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
)

// A broker that takes requests and never answers delays no partition of another one. A partition of a topic has one
// request at a time, so that its records keep their order. WriteEncoded waits for an answer until its patience ends.
// The request continues, and a later call for the partition takes its answer.
const (
	// leastPatience is how long an answer is waited for at least; beyond it the wait is that of slower answers.
	leastPatience = time.Second
	slower        = 4
	// latePatience is how long it is where the partition's last request had no answer within patience.
	latePatience = 100 * time.Millisecond
)

// laneKey names a partition of a topic.
type laneKey struct {
	topic     byte
	partition int
}

// lane is the way to a partition. One call of sendLane at a time uses it.
type lane struct {
	flight *flight // nil where no answer is to be taken over
	late   bool
}

// flight is one request.
type flight struct {
	n     int            // records
	sums  map[uint64]int // how many of them have a [record.sum]
	ended chan struct{}
	err   error // once ended is closed
}

// send sends the records that are not done, partitions concurrently, and reports whether Kafka confirmed new ones. An
// error may pass or needs an operator. Permanently refused records are in w.doing.
func (w *Writer) send(ctx context.Context, c *contents) (progress bool, err error) {
	waiting := map[laneKey][]int{}
	var order []laneKey
	for i := range c.records {
		if w.doing.done[i] || w.doing.refused[i] != nil {
			continue
		}
		k := laneKey{c.records[i].topic, c.records[i].partition}
		if waiting[k] == nil {
			order = append(order, k)
		}
		waiting[k] = append(waiting[k], i)
	}
	// Reports go before the records that hold their number.
	slices.SortStableFunc(order, func(a, b laneKey) int { return cmp.Compare(b.topic, a.topic) })

	var mu sync.Mutex // of what is given back
	var errs []error
	var work sync.WaitGroup
	slots := make(chan struct{}, w.conf.InFlight)
	for _, k := range order {
		slots <- struct{}{}
		mu.Lock()
		hopeless := needsPerson(errors.Join(errs...)) || ctx.Err() != nil
		mu.Unlock()
		if hopeless {
			break // all other partitions would say the same
		}
		l := w.lanes[k]
		if l == nil {
			l = &lane{}
			w.lanes[k] = l
		}
		work.Go(func() {
			defer func() { <-slots }()
			some, err := w.sendLane(ctx, c, k, l, waiting[k])
			mu.Lock()
			defer mu.Unlock()
			progress = progress || some
			if err != nil {
				errs = append(errs, fmt.Errorf("partition %d: %w", k.partition, err))
			}
		})
	}
	work.Wait()
	if len(errs) == 0 {
		return progress, ctx.Err()
	}
	for _, err := range errs {
		if needsPerson(err) {
			return progress, err
		}
	}
	return progress, errs[0]
}

// sendLane sends records of one partition, by their index and in order, after those in flight.
func (w *Writer) sendLane(ctx context.Context, c *contents, k laneKey, l *lane, rest []int) (progress bool, _ error) {
	for single := false; ; {
		if l.flight == nil {
			if len(rest) == 0 {
				return progress, nil
			}
			l.flight = w.launch(c, k, rest[:w.inOne(c, rest, single)])
		}
		patience := time.NewTimer(w.patience(l))
		select {
		case <-l.flight.ended:
			patience.Stop()
		case <-patience.C:
			l.late = true
			return progress, fmt.Errorf("kafka: write to topic %s: its broker has not answered yet", w.topic(k))
		case <-ctx.Done():
			patience.Stop()
			return progress, ctx.Err()
		}
		f := l.flight
		l.flight = nil
		e, ok := errors.AsType[*brokers.Error](f.err)
		never := ok && (e.Kind == brokers.TooLarge || e.Kind == brokers.Refused)
		if f.err != nil && !never {
			return progress, f.err
		}
		l.late = false
		if never && f.n > 1 {
			single = true // until it is known which of them it is
			continue
		}
		before := len(rest)
		rest = w.settle(c, rest, f, never)
		progress = progress || len(rest) < before
	}
}

// inOne returns how many of the records go in one request.
func (w *Writer) inOne(c *contents, rest []int, single bool) int {
	n := 1
	for size := c.records[rest[0]].size(); n < len(rest) && !single; n++ {
		if size += c.records[rest[n]].size(); size > w.conf.MaxMessageBytes {
			break
		}
	}
	return n
}

// settle notes in w.doing the outcome of the records in the answer to a request, and returns the records without one.
func (w *Writer) settle(c *contents, list []int, f *flight, never bool) (rest []int) {
	w.sending.Lock()
	defer w.sending.Unlock()
	for sum := range f.sums {
		delete(w.unsure, sum)
	}
	for _, i := range list {
		sum := c.records[i].sum()
		if f.sums[sum] == 0 {
			rest = append(rest, i)
			continue
		}
		switch f.sums[sum]--; {
		case never:
			w.doing.refused[i] = f.err
		default:
			w.doing.done[i] = true
		}
	}
	return rest
}

// patience is how long the answer to the request of a lane is waited for.
func (w *Writer) patience(l *lane) time.Duration {
	if l.late {
		return latePatience
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	return max(leastPatience, slower*w.roundTrip)
}

func (w *Writer) topic(k laneKey) string {
	if k.topic == toReports {
		return w.client.Topic(brokers.Reports)
	}
	return w.client.Topic(brokers.Windows)
}

// launch begins a request with copies of records.
func (w *Writer) launch(c *contents, k laneKey, list []int) *flight {
	f := &flight{n: len(list), sums: map[uint64]int{}, ended: make(chan struct{})}
	records := make([]record, len(list))
	w.sending.Lock()
	for i, at := range list {
		r := &c.records[at]
		records[i] = *r
		records[i].head, records[i].value = bytes.Clone(r.head), bytes.Clone(r.value)
		sum := r.sum()
		f.sums[sum]++
		if w.unsure[sum] {
			w.stats.repeats.Add(1)
		}
		if w.unsure == nil || len(w.unsure) >= maxUnsure {
			w.unsure = map[uint64]bool{}
		}
		w.unsure[sum] = true
	}
	w.sending.Unlock()
	label := time.Unix(0, c.label)
	go func() {
		defer close(f.ended)
		f.err = w.produce(w.flights, w.topic(k), k.partition, label, records)
	}()
	return f
}

// produce sends one batch, and notes what Kafka confirms of it.
func (w *Writer) produce(ctx context.Context, topic string, partition int, label time.Time, list []record) error {
	records := make([]kafka.Record, len(list))
	size := 0
	for i := range list {
		r := &list[i]
		records[i] = kafka.Record{Time: label, Value: kafka.NewBytes(r.value), Headers: []kafka.Header{{Key: fleet.HeaderKey, Value: r.head}}}
		size += len(r.value)
	}
	w.stats.requests.Add(1)
	began, before := time.Now(), w.clock()
	appended, err := w.client.Append(ctx, topic, partition, records...)
	if err != nil {
		return err
	}
	w.seeClock(before, w.clock(), appended)
	w.stats.records.Add(uint64(len(list)))
	w.stats.bytes.Add(uint64(size))
	for i := range list {
		w.confirm(&list[i])
	}
	w.sending.Lock()
	w.roundTrip += (time.Since(began) - w.roundTrip) / 8
	w.sending.Unlock()
	return nil
}
