package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

func testLog(b *servertest.Broker) *Log {
	cfg := DefaultLogConfig()
	cfg.HeaderKey = "h"
	return NewLog(b.Client(), cfg)
}

func message10(from, n int, at time.Time) (out []ingest.Message) {
	for i := from; i < from+n; i++ {
		out = append(out, ingest.Message{
			Time: at.Add(time.Duration(i) * time.Second).UnixNano(), Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, "value ", i), Head: fmt.Append(nil, "head ", i),
		})
	}
	return out
}

func readAll(t *testing.T, r ingest.LogReader, until int64) (out []ingest.Message, errs []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for r.Offset() < until {
		got, err := r.Next(ctx)
		if ctx.Err() != nil {
			t.Fatalf("at offset %d of %d: %v", r.Offset(), until, errs)
		}
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, got...)
	}
	return out, errs
}

func TestLog(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "log"
	b.CreateTopic(topic, 3, "retention.ms=3600000")
	l := testLog(b)
	ctx := t.Context()
	if n, err := l.Partitions(ctx, topic); n != 3 || err != nil {
		t.Errorf("Partitions = %d, %v; want 3", n, err)
	}
	if d, err := l.Retention(ctx, topic); d != time.Hour || err != nil {
		t.Errorf("Retention = %v, %v; want an hour", d, err)
	}
	at := time.Unix(time.Now().Unix()-100, 0)
	l.cfg.appendMax = 40 // four messages of 8 bytes and some more, so that there are several batches
	if first, err := l.Append(ctx, topic, 1, message10(0, 10, at)...); first != 0 || err != nil {
		t.Fatalf("Append = %d, %v; want 0", first, err)
	}
	if first, err := l.Append(ctx, topic, 1, message10(10, 10, at)...); first != 10 || err != nil {
		t.Fatalf("Append = %d, %v; want 10", first, err)
	}
	if first, next, err := l.Bounds(ctx, topic, 1); first != 0 || next != 20 || err != nil {
		t.Errorf("Bounds = %d, %d, %v; want 0, 20", first, next, err)
	}
	for offset, when := range map[int64]time.Time{0: at.Add(-time.Hour), 7: at.Add(7 * time.Second), 8: at.Add(7*time.Second + 1e6), 20: at.Add(time.Hour)} {
		if got, err := l.OffsetAt(ctx, topic, 1, when.UnixNano()); got != offset || err != nil {
			t.Errorf("OffsetAt(%v) = %d, %v; want %d", when, got, err, offset)
		}
	}
	got, errs := readAll(t, l.Reader(topic, 1, 2), 20)
	if len(got) != 18 || errs != nil {
		t.Fatalf("%d messages, errors %v; want 18", len(got), errs)
	}
	for i, m := range got {
		n := i + 2
		if m.Offset != int64(n) || string(m.Key) != fmt.Sprint("k", n) || string(m.Value) != fmt.Sprint("value ", n) || string(m.Head) != fmt.Sprint("head ", n) ||
			m.Time != at.Add(time.Duration(n)*time.Second).UnixNano() {
			t.Errorf("message %d: %+v", n, m)
		}
	}
	// A reader that wants little asks for little: a batch, of five.
	few := l.Reader(topic, 1, 5)
	few.Limit(1)
	if got, err := few.Next(ctx); len(got) != 5 || got[0].Offset != 5 || err != nil {
		t.Errorf("with a limit of a byte: %d messages, %v; want the batch of five", len(got), err)
	}
	// Behind the end nothing comes, and that is no error.
	r := l.Reader(topic, 1, 20)
	if got, err := r.Next(ctx); got != nil || err != nil || r.High() != 20 {
		t.Errorf("at the end: %v, %v, high %d", got, err, r.High())
	}
	// An offset that is not there.
	r = l.Reader(topic, 1, 99)
	_, err := r.Next(ctx)
	if gap, ok := errors.AsType[*gapError](err); !ok || gap.To != 20 || r.Offset() != 20 {
		t.Errorf("beyond the end: %v, then at %d; want a gap to 20", err, r.Offset())
	}
	// A key alone removes what compaction keeps under it.
	if _, err := l.Append(ctx, topic, 2, ingest.Message{Key: []byte("gone")}); err != nil {
		t.Fatal(err)
	}
	if got, _ := readAll(t, l.Reader(topic, 2, 0), 1); len(got) != 1 || got[0].Value != nil || got[0].Head != nil {
		t.Errorf("a key alone: %+v", got)
	}
	l.cfg.Timeout = 200 * time.Millisecond
	if _, err := l.Append(ctx, topic, 7, ingest.Message{Value: []byte("x")}); err == nil {
		t.Error("a partition that does not exist takes messages")
	}
}

// A flipped bit on the disk of a broker costs its batch, and a torn file everything after the tear.
func TestCorrupt(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := t.TempDir()
	b := servertest.StartBroker(t, servertest.BrokerOptions{Properties: map[string]string{"log.dirs": dir}})
	topic := b.Prefix + "bad"
	b.CreateTopic(topic, 1)
	l := testLog(b)
	ctx := t.Context()
	for i := range 6 { // a batch each
		if _, err := l.Append(ctx, topic, 0, message10(10*i, 10, time.Now())...); err != nil {
			t.Fatal(err)
		}
	}
	segment := filepath.Join(dir, topic+"-0", "00000000000000000000.log")
	f, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int64{2, 3} { // of six that are about as long
		at := info.Size()*batch/6 + info.Size()/12
		var one [1]byte
		if _, err := f.ReadAt(one[:], at); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 4
		if _, err := f.WriteAt(one[:], at); err != nil {
			t.Fatal(err)
		}
	}
	got, errs := readAll(t, l.Reader(topic, 0, 5), 60)
	if len(got) != 35 || got[14].Offset != 19 || got[15].Offset != 40 {
		t.Errorf("%d messages: %+v", len(got), got)
	}
	var corrupt *corruptError
	for _, err := range errs {
		if e, ok := errors.AsType[*corruptError](err); ok {
			corrupt = e
		}
	}
	if corrupt == nil || corrupt.From != 20 || corrupt.To != 40 || l.Stats().Corrupt != 1 {
		t.Errorf("reported %v (%v); want that offsets 20 to 39 cannot be read", corrupt, errs)
	}
}

// A broker that is away is no corruption, and reading continues at the same place.
func TestBrokerAway(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	topic := b.Prefix + "away"
	b.CreateTopic(topic, 1)
	l := testLog(b)
	l.cfg.Timeout = time.Second
	if _, err := l.Append(t.Context(), topic, 0, message10(0, 10, time.Now())...); err != nil {
		t.Fatal(err)
	}
	r := l.Reader(topic, 0, 0)
	if got, _ := readAll(t, r, 10); len(got) != 10 {
		t.Fatalf("%d messages", len(got))
	}
	b.Kill()
	for range 5 {
		if _, err := r.Next(t.Context()); err == nil {
			t.Error("a dead broker answers")
		}
	}
	done := make(chan error, 1)
	go func() { // begins while no broker is there
		_, err := l.Append(t.Context(), topic, 0, message10(10, 10, time.Now())...)
		done <- err
	}()
	b.Start()
	got, _ := readAll(t, r, 20)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := l.Stats().Corrupt; n != 0 || len(got) < 10 || string(got[9].Value) != "value 19" {
		t.Errorf("%d stretches given up; %v", n, got)
	}
}
