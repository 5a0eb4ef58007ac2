package kafka

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	wire "github.com/segmentio/kafka-go/protocol/produce"

	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// A broker that refuses one record of three takes all others, in order, within twice the requests of a broker that
// refuses none. This holds whether records come alone or together. Refused records are kept.
func TestThirdFails(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	const records, partitions, long, short = 60, 4, 5000, 100
	for _, together := range []int{1, 20} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			var took, again [2]uint64 // requests, and those of them that a slow broker did not answer in time
			for i, most := range []int{100_000, 3000} {
				c := of(b)
				c.Prefix += fmt.Sprintf("%d-%d.", together, most)
				b.CreateTopic(c.Topic(brokers.Windows), partitions, fmt.Sprintf("max.message.bytes=%d", most))
				w := open(t, c)
				folder := sink.OpenRefused(t.TempDir(), 1<<20)
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
						p.add(toWindows, n%partitions, []byte("head"), bytes.Repeat([]byte{byte(n)}, size))
						if size < most {
							want[n%partitions] = append(want[n%partitions], byte(n))
						}
						n++
					}
					put(t, q, p)
				}
				testkit.Until(t, "all records are written", func() bool { return q.Stats().PointsWritten+q.Stats().PointsRejected == records })
				if err := q.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				took[i] = w.Stats().Requests
				for part := range partitions {
					var got []byte
					for _, m := range b.Read(c.Topic(brokers.Windows), part, 0) {
						got = append(got, m.Value[0])
					}
					if !bytes.Equal(got, want[part]) {
						t.Errorf("partition %d has %v, want %v", part, got, want[part])
					}
				}
				entries, err := sink.ListRefused(folder.Dir())
				points := uint64(0)
				for _, name := range entries {
					if e, err := sink.ReadRefused(folder.Dir(), name); err == nil {
						points += e.Points()
					}
				}
				if st := q.Stats(); err != nil || int(st.PointsRejected) != i*records/3 || points != st.PointsRejected ||
					st.Retries != 0 && !strings.Contains(st.LastError, "has not answered yet") {
					t.Errorf("%+v, %d are kept, %v", st, points, err)
				} else {
					again[i] = st.Retries
				}
			}
			if again == [2]uint64{} && took[1] > 2*max(took[0], records) {
				t.Errorf("it took %d requests, and %d where none is refused", took[1], took[0])
			}
			t.Logf("%d requests, and %d where none is refused; %d batches were sent again", took[1], took[0], again)
		})
	}
}

// leaderless answers for one partition of three as a broker that does not lead it, or leaves its requests unanswered.
// It passes all other requests on.
type leaderless struct {
	kafka.RoundTripper
	hangs    bool
	mended   atomic.Bool
	requests atomic.Uint64 // to write to others
	hung     chan struct{} // closed, it ends the connections that hang
}

func (l *leaderless) RoundTrip(ctx context.Context, addr net.Addr, req kafka.Request) (kafka.Response, error) {
	p, ok := req.(*wire.Request)
	if !ok {
		return l.RoundTripper.RoundTrip(ctx, addr, req)
	}
	topic := p.Topics[0]
	switch partition := topic.Partitions[0].Partition; {
	case partition%3 != 0:
		l.requests.Add(1)
	case !l.mended.Load():
		if l.hangs {
			select {
			case <-ctx.Done():
				return nil, context.DeadlineExceeded
			case <-l.hung:
				return nil, io.ErrUnexpectedEOF
			}
		}
		return &wire.Response{Topics: []wire.ResponseTopic{{Topic: topic.Topic, Partitions: []wire.ResponsePartition{{
			Partition: partition, ErrorCode: int16(kafka.NotLeaderForPartition),
		}}}}}, nil
	}
	return l.RoundTripper.RoundTrip(ctx, addr, req)
}

// A third of the partitions have no leader, or do not answer: all others have their records, in order, in as many requests as ever. The
// rest is counted as set aside, and there in its order when the partitions are back. No other waits for the end of a request that hangs.
func TestThirdOfPartitions(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	const windows, ofTopic = 30, 6
	for _, x := range []struct {
		hangs   bool
		timeout time.Duration
	}{{false, testkit.Patience}, {true, 200 * time.Millisecond}, {true, 10 * time.Minute}} { // the last one is longer than any test waits
		hangs := x.hangs
		t.Run(fmt.Sprintf("hangs=%t for %v", hangs, x.timeout), func(t *testing.T) {
			c := of(b)
			c.Prefix += fmt.Sprintf("%t-%v.", hangs, x.timeout)
			c.Slices, c.Timeout = ofTopic, x.timeout
			topics := []string{brokers.Windows, brokers.Reports}
			for _, topic := range topics {
				b.CreateTopic(c.Topic(topic), ofTopic)
			}
			w := open(t, c)
			broker := &leaderless{RoundTripper: w.client.Client.Transport, hangs: hangs, hung: make(chan struct{})}
			w.client.Client.Transport = broker
			qc := sink.DefaultQueueConfig()
			qc.RetryMin, qc.RetryMax = 50*time.Millisecond, time.Second
			q := sink.NewQueue(w, qc, sink.QueueOptions{})
			q.Start()
			// complete reports whether partitions that fail, or the others, have all their records, and that all are in order.
			complete := func(failing bool) (all bool) {
				all = true
				for part := range ofTopic {
					for _, topic := range topics {
						var got []byte
						for _, m := range b.Read(c.Topic(topic), part, 0) {
							got = append(got, m.Value[0])
						}
						once := slices.Compact(slices.Clone(got))
						if !slices.IsSorted(once) {
							t.Fatalf("partition %d of %s has %v", part, topic, got)
						}
						if (part%3 == 0) == failing {
							all = all && len(once) == windows
						} else if part%3 == 0 && !broker.mended.Load() && len(got) > 0 {
							t.Fatalf("partition %d of %s has %v, and no leader", part, topic, got)
						}
					}
				}
				return all
			}
			for n := range windows {
				for part := range ofTopic { // reports go one partition at a time
					p := newPayload(labelNow(), false)
					p.add(toReports, part, fmt.Appendf(nil, "reports %d", n), []byte{byte(n)})
					put(t, q, p)
				}
				p := newPayload(labelNow(), false)
				for part := range ofTopic {
					p.add(toWindows, part, fmt.Appendf(nil, "window %d", n), []byte{byte(n)})
				}
				put(t, q, p)
			}
			testkit.Until(t, "all records of other partitions are written", func() bool { return complete(false) })
			testkit.Until(t, "all others are set aside", func() bool { return q.Stats().Aside.Points == windows*2*ofTopic/3 })
			if st := q.Stats(); st.Failing || st.PointsRejected > 0 || st.Aside.Error == "" {
				t.Errorf("%+v", st)
			}
			if n := broker.requests.Load(); !hangs && n != windows*2*ofTopic*2/3 {
				t.Errorf("%d requests to write to other partitions, want one for each record", n)
			}
			broker.mended.Store(true)
			close(broker.hung)
			testkit.Until(t, "all records are written", func() bool { return complete(true) && q.Stats().PointsWritten == windows*2*ofTopic })
			if st := q.Stats(); st.Aside.Pieces > 0 || st.PointsRejected > 0 {
				t.Errorf("%+v", st)
			}
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// put puts a payload that stands for one report.
func put(t *testing.T, q *sink.Queue, p payload) {
	t.Helper()
	e := sink.Encoded{Payload: p.b, Series: []sink.SeriesCount{{Series: series, Points: p.records}}, Reports: 1}
	if err := q.PutEncoded(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}
