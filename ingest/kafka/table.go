package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// Table is the present state of a compacted topic of one partition: the last value of each key. It keeps all of them
// in memory. It is safe for use by several goroutines.
type Table struct {
	c     *Client
	topic string
	bound TableBounds

	reading sync.Mutex // one at a time

	mu     sync.Mutex
	at     int64 // next offset to be read
	values map[string][]byte
	bytes  int
	left   uint64 // records that were left out
}

// TableBounds limits what a table keeps. Keys beyond them are left out, and counted.
type TableBounds struct {
	Keys  int // most keys
	Value int // most bytes of a value
	Bytes int // most bytes of all keys and values

	// Keep reports whether a key is kept. Nil keeps all.
	Keep func(key string) bool
}

// NewTable makes a table that has read nothing yet.
func (c *Client) NewTable(topic string, bound TableBounds) *Table {
	return &Table{c: c, topic: topic, bound: bound, values: map[string][]byte{}}
}

// Topic is its name.
func (t *Table) Topic() string { return t.topic }

// Get returns the last value of a key that was read. It may not be changed.
func (t *Table) Get(key string) (value []byte, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok = t.values[key]
	return value, ok
}

// All returns all keys with their values. They may not be changed.
func (t *Table) All() map[string][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.values)
}

// leftOut returns the number of records beyond the bounds.
func (t *Table) leftOut() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}

// Refresh reads up to the present end of the topic, and returns the changed keys in order. The first call reads all of
// it. After an error, the records read so far are kept, and the next call continues.
func (t *Table) Refresh(ctx context.Context) (changed []string, err error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	seen := map[string]bool{}
	err = t.refresh(ctx, seen)
	return slices.Sorted(maps.Keys(seen)), t.c.Explain(err, ToRead(t.topic))
}

func (t *Table) refresh(ctx context.Context, seen map[string]bool) error {
	offsets, err := t.c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		t.topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)},
	}})
	if err != nil {
		return err
	}
	if len(offsets.Topics[t.topic]) != 1 {
		return kafka.UnknownTopicOrPartition
	}
	o := offsets.Topics[t.topic][0]
	if o.Error != nil {
		return o.Error
	}
	if t.at > o.LastOffset { // another topic of the same name: what was read is not in it
		t.mu.Lock()
		for k := range t.values {
			seen[k] = true
		}
		t.at, t.bytes = 0, 0
		clear(t.values)
		t.mu.Unlock()
	}
	for at := max(t.at, o.FirstOffset); at < o.LastOffset; {
		next, err := t.read(ctx, at, seen)
		if err != nil {
			return err
		}
		if next == at {
			next = o.LastOffset // the rest was compacted away
		}
		at = next
		t.mu.Lock()
		t.at = at
		t.mu.Unlock()
	}
	return nil
}

// read reads some records from an offset on, and returns the offset behind them.
func (t *Table) read(ctx context.Context, at int64, seen map[string]bool) (int64, error) {
	resp, err := t.c.Fetch(ctx, &kafka.FetchRequest{
		Topic: t.topic, Offset: at, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: t.c.conf.Timeout / 2,
	})
	if err == nil {
		err = resp.Error
	}
	if err != nil {
		return at, err
	}
	for {
		r, err := resp.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return at, fmt.Errorf("record after offset %d: %w", at, err)
		}
		if r.Offset < at {
			continue // a batch comes whole
		}
		key, kerr := kafka.ReadAll(r.Key)
		value, verr := kafka.ReadAll(r.Value)
		if err := errors.Join(kerr, verr); err != nil {
			return at, fmt.Errorf("record at offset %d: %w", r.Offset, err)
		}
		at = r.Offset + 1
		t.put(string(key), value, r.Value == nil, seen)
	}
}

func (t *Table) put(key string, value []byte, gone bool, seen map[string]bool) {
	if t.bound.Keep != nil && !t.bound.Keep(key) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.values[key]
	bytes := t.bytes
	if had {
		bytes -= len(key) + len(old)
	}
	switch {
	case gone:
		if !had {
			return
		}
		delete(t.values, key)
	case len(value) > t.bound.Value || !had && len(t.values) >= t.bound.Keys || bytes+len(key)+len(value) > t.bound.Bytes:
		t.left++
		return
	default:
		t.values[key] = value
		bytes += len(key) + len(value)
	}
	t.bytes = bytes
	seen[key] = true
}

// Put writes a value, or with nil takes the key away, and returns when all replicas have it. It is not read by that.
// Appended is as of [Client.Append].
func (t *Table) Put(ctx context.Context, key string, value []byte) (appended time.Time, err error) {
	r := kafka.Record{Time: time.Now(), Key: kafka.NewBytes([]byte(key))}
	if value != nil {
		r.Value = kafka.NewBytes(value)
	}
	return t.c.Append(ctx, t.topic, 0, r)
}

// Append writes records to a partition, and returns when all replicas have them. Appended is when the broker's clock said that they
// were written, where the topic keeps such times; zero otherwise.
func (c *Client) Append(ctx context.Context, topic string, partition int, records ...kafka.Record) (appended time.Time, err error) {
	resp, err := c.Produce(ctx, &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = resp.Error
	}
	if err != nil {
		return time.Time{}, c.Explain(err, ToWrite(topic))
	}
	if at := resp.LogAppendTime; at.UnixMilli() > 0 {
		appended = at
	}
	return appended, nil
}
