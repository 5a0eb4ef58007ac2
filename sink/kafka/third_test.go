package kafka

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/internal/kafkatest"
	"github.com/hopscope/hopscope/internal/nettest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/refused"
)

// A broker that refuses one record of three has all others, in their order, within twice the requests of one that refuses none, whether
// records come alone or together; those that are refused are kept.
func TestThirdFails(t *testing.T) {
	t.Parallel()
	b := kafkatest.Shared(t)
	const records, slices, long, short = 60, 4, 5000, 100
	for _, together := range []int{1, 20} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			var took [2]uint64
			for i, most := range []int{100_000, 3000} {
				c := of(b)
				c.Prefix += fmt.Sprintf("%d-%d.", together, most)
				b.CreateTopic(c.Topic(conn.Windows), slices, fmt.Sprintf("max.message.bytes=%d", most))
				w := open(t, c)
				folder := refused.Open(t.TempDir(), 1<<20)
				q := sink.NewQueue(w, sink.DefaultQueueConfig(), sink.QueueOptions{Refused: folder})
				q.Start()
				want := map[int][]byte{}
				for n := 0; n < records; {
					p := newPayload(labelNow(), false)
					for first := true; first || n%together != 0; first = false {
						size := short
						if n%3 == 0 {
							size = long
						}
						p.add(toWindows, n%slices, []byte("head"), bytes.Repeat([]byte{byte(n)}, size))
						if size < most {
							want[n%slices] = append(want[n%slices], byte(n))
						}
						n++
					}
					e := sink.Encoded{Payload: p.b, Series: []sink.SeriesCount{{Series: series, Points: p.records}}, Reports: 1}
					if err := q.PutEncoded(t.Context(), e); err != nil {
						t.Fatal(err)
					}
				}
				nettest.Until(t, "all records are written", func() bool { return q.Stats().PointsWritten+q.Stats().PointsRejected == records })
				if err := q.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				took[i] = w.Stats().Requests
				for part := range slices {
					var got []byte
					for _, m := range b.Read(c.Topic(conn.Windows), part, 0) {
						got = append(got, m.Value[0])
					}
					if !bytes.Equal(got, want[part]) {
						t.Errorf("partition %d has %v, want %v", part, got, want[part])
					}
				}
				entries, err := refused.List(folder.Dir())
				points := uint64(0)
				for _, name := range entries {
					if e, err := refused.Read(folder.Dir(), name); err == nil {
						points += e.Points()
					}
				}
				if st := q.Stats(); err != nil || int(st.PointsRejected) != i*records/3 || points != st.PointsRejected || st.Retries != 0 {
					t.Errorf("%+v, %d are kept, %v", st, points, err)
				}
			}
			if took[1] > 2*max(took[0], records) {
				t.Errorf("it took %d requests, and %d where none is refused", took[1], took[0])
			}
			t.Logf("%d requests, and %d where none is refused", took[1], took[0])
		})
	}
}
