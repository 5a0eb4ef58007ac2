package influx

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/influxtest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// The server is killed with -9 in the middle of writes, again and again, and stopped in between. When it is back, every
// point is there exactly once, and the account says so.
func TestKilledServer(t *testing.T) {
	influxtest.Each(t, func(t *testing.T, s *influxtest.Server) {
		sc := spool.DefaultConfig()
		sc.Dir = t.TempDir()
		sp, err := spool.Open(sc)
		if err != nil {
			t.Fatal(err)
		}
		tally := &sink.Tally{}
		conf := sink.DefaultQueueConfig()
		conf.RetryMin, conf.RetryMax = 5*time.Millisecond, 50*time.Millisecond
		conf.MaxBatches = 4
		q := sink.NewQueue(writerTo(t, s, nil), conf, sink.QueueOptions{Spool: sp, Account: tally})
		q.Start()
		const windows, hops = 200, 50
		fed := make(chan error, 1)
		go func() {
			for i := range int64(windows) {
				b := &sink.Batch{Reports: 1000}
				for h := range hops {
					b.Points = append(b.Points, simple("m", fmt.Sprint(h), i, base+i*second))
				}
				tally.Receive(b.Reports)
				if err := q.Put(context.Background(), b); err != nil {
					fed <- err
					return
				}
				time.Sleep(3 * time.Millisecond)
			}
			fed <- nil
		}()
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			s.Kill()
			time.Sleep(50 * time.Millisecond)
			s.Start()
		}
		if err := <-fed; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// The store is up, but the last write may have failed; an orderly end waits only for a store that works.
		for q.Stats().Spool.Records > 0 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err := q.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if n := tally.At(sink.Stored); n != windows*1000 {
			t.Errorf("%d reports stored, want %d: %+v", n, windows*1000, q.Stats())
		}
		if st := q.Stats(); st.PointsWritten != windows*hops || st.PointsDropped+st.PointsRejected != 0 {
			t.Errorf("Stats = %+v", st)
		}
		rows := s.MustQuery(all("m"))
		sum := int64(0)
		for _, r := range rows {
			sum += r["_value"].(int64)
		}
		if len(rows) != windows*hops || sum != hops*windows*(windows-1)/2 {
			t.Errorf("%d points with sum %d, want %d with %d", len(rows), sum, windows*hops, hops*windows*(windows-1)/2)
		}
		if q.Stats().Retries == 0 {
			t.Error("no write failed, so nothing was tested")
		}
	})
}
