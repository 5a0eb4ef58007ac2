package influx

import (
	"fmt"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// The server is killed with -9 in the middle of writes, again and again, and stopped in between. When it is back, every
// point is there exactly once, and the account says so.
func TestKilledServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servertest.EachInflux(t, func(t *testing.T, s *servertest.Influx) {
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
		q := sink.NewQueue(writerTo(t, s, nil), conf, sink.QueueOptions{Spool: sp, Account: tally, Policy: sink.Block})
		q.Start()
		const windows, hops = 200, 50
		put := func(from, to int64) {
			for i := from; i < to; i++ {
				b := &sink.Batch{Reports: 1000}
				for h := range hops {
					b.Points = append(b.Points, simple("m", fmt.Sprint(h), i, base+i*second))
				}
				tally.Receive(b.Reports)
				if err := q.Put(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		for round := range int64(3) {
			written, failed := q.Stats().Writes, q.Stats().Retries
			put(66*round, 66*round+50)
			testkit.Until(t, "the server is written to", func() bool { return q.Stats().Writes > written })
			s.Kill() // while the others are on their way
			put(66*round+50, 66*round+66)
			testkit.Until(t, "the server is missed", func() bool { return q.Stats().Retries > failed })
			s.Start()
		}
		put(3*66, windows)
		// The store is up, but the last write may have failed; an orderly end waits only for a store that works.
		testkit.Until(t, "the spool is empty", func() bool { return q.Stats().Spool.Records == 0 })
		if err := q.Close(t.Context()); err != nil {
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
