package rate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
	sinkkafka "github.com/hopscope/hopscope/sink/kafka"
)

// rawConfig holds the parameters of the measurement.
type rawConfig struct {
	Brokers []string
	Reports int // of a run
	Rounds  int // of both ways, which take turns
}

// DefaultRawConfig is a measurement of about a minute.
func DefaultRawConfig(brokers ...string) rawConfig {
	return rawConfig{Brokers: brokers, Reports: 1_000_000, Rounds: 5}
}

// RawResult holds the measured values.
type RawResult struct {
	Ours, Library []float64 // reports a second, by round
	Bytes         float64   // a report of hopscope, in Kafka
	LibraryBytes  float64
	// CPU time of this process a report, in ns, without the broker's. Other work on the machine does not change it.
	CPU, LibraryCPU []float64
}

// ratio is the median of the rounds' ratios of hopscope to the bare loop.
func (r *RawResult) ratio() float64 {
	var list []float64
	for i := range r.Ours {
		list = append(list, r.Ours[i]/r.Library[i])
	}
	return harness.Median(list)
}

// Print writes the result as one line.
func (r *RawResult) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "raw reports end to end: %.0f k/s, %.0f ns of CPU, %.1f B a report; bare loop of the library: %.0f k/s, %.0f ns, %.1f B; ratio %.2f (median of %d rounds)\n",
		harness.Median(r.Ours)/1e3, harness.Median(r.CPU), r.Bytes, harness.Median(r.Library)/1e3, harness.Median(r.LibraryCPU), r.LibraryBytes, r.ratio(), len(r.Ours))
	return err
}

// Raw sends reports through Kafka in both ways by turns. A run ends when all reports were read again.
func Raw(ctx context.Context, cfg rawConfig) (RawResult, error) {
	list, err := reports(min(cfg.Reports, 60_000))
	if err != nil {
		return RawResult{}, err
	}
	var result RawResult
	for i := range cfg.Rounds {
		ways := []bool{true, false}
		if i%2 == 1 {
			slices.Reverse(ways)
		}
		for _, ours := range ways {
			r := rawRun{cfg: cfg, list: list, ours: ours, topic: fmt.Sprintf("hopscope-bench-%d-%t-%d", i, ours, time.Now().UnixNano())}
			before := traffic.CPUTime()
			rate, bytes, err := r.run(ctx)
			cpu := float64(traffic.CPUTime()-before) / float64(cfg.Reports)
			if err != nil {
				return result, fmt.Errorf("sending reports through Kafka: %w", err)
			}
			if ours {
				result.Ours, result.CPU, result.Bytes = append(result.Ours, rate), append(result.CPU, cpu), bytes
			} else {
				result.Library, result.LibraryCPU, result.LibraryBytes = append(result.Library, rate), append(result.LibraryCPU, cpu), bytes
			}
		}
	}
	return result, nil
}

const (
	rawPartitions = 2
	rawWindow     = 10 * time.Second
	// libraryBatch is the reports of a batch of the bare loop: about as many as those of hopscope have.
	libraryBatch = 3000
	inFlight     = 4
)

type rawRun struct {
	cfg    rawConfig
	list   []*decode.Report
	ours   bool
	topic  string
	client *kafka.Client
	bytes  atomic.Int64
	read   atomic.Int64
}

// message is a value on its way to a partition.
type message struct {
	partition int
	value     []byte
}

func (r *rawRun) run(ctx context.Context) (rate, bytes float64, err error) {
	transport := &kafka.Transport{MetadataTTL: time.Second}
	defer transport.CloseIdleConnections()
	r.client = &kafka.Client{Addr: kafka.TCP(r.cfg.Brokers...), Timeout: 30 * time.Second, Transport: transport}
	if err := r.createTopic(ctx); err != nil {
		return 0, 0, err
	}
	defer r.client.DeleteTopics(context.WithoutCancel(ctx), &kafka.DeleteTopicsRequest{Topics: []string{r.topic}})

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	messages := make(chan message, inFlight)
	var senders, readers sync.WaitGroup
	for range inFlight {
		senders.Go(func() {
			for m := range messages {
				if err := r.send(ctx, m); err != nil {
					cancel(err)
				}
			}
		})
	}
	for p := range rawPartitions {
		readers.Go(func() {
			if err := r.fetch(ctx, p); err != nil {
				cancel(err)
			}
		})
	}
	produce := r.produceLibrary
	if r.ours {
		produce = r.produceOurs
	}
	err = produce(ctx, messages)
	close(messages)
	senders.Wait()
	if err != nil {
		cancel(err)
	}
	readers.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, 0, err
	}
	n := float64(r.cfg.Reports)
	return n / time.Since(start).Seconds(), float64(r.bytes.Load()) / n, nil
}

func (r *rawRun) createTopic(ctx context.Context) error {
	resp, err := r.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: r.topic, NumPartitions: rawPartitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	if err := resp.Errors[r.topic]; err != nil {
		return err
	}
	var ask []kafka.OffsetRequest
	for p := range rawPartitions {
		ask = append(ask, kafka.LastOffsetOf(p))
	}
	for { // a new topic has no leaders yet, and then metadata without them
		resp, err := r.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{r.topic: ask}})
		if err == nil && len(resp.Topics[r.topic]) == rawPartitions &&
			!slices.ContainsFunc(resp.Topics[r.topic], func(p kafka.PartitionOffsets) bool { return p.Error != nil }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *rawRun) send(ctx context.Context, m message) error {
	resp, err := r.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: r.topic, Partition: m.partition, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes(m.value)}),
	})
	if err != nil {
		return err
	}
	r.bytes.Add(int64(len(m.value)))
	return resp.Error
}

// chunks calls f with all reports of a run, n at a time.
func (r *rawRun) chunks(ctx context.Context, n int, f func([]*decode.Report) error) error {
	for sent := 0; sent < r.cfg.Reports; {
		at := sent % len(r.list)
		part := r.list[at:min(at+n, len(r.list), at+r.cfg.Reports-sent)]
		if err := errors.Join(ctx.Err(), f(part)); err != nil {
			return err
		}
		sent += len(part)
	}
	return nil
}

func (r *rawRun) produceLibrary(ctx context.Context, out chan<- message) error {
	w := newLibraryWriter()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	n := 0
	return r.chunks(ctx, libraryBatch, func(part []*decode.Report) error {
		stream, err := w.encode(part)
		if err != nil {
			return err
		}
		n++
		return give(ctx, out, message{n % rawPartitions, z.EncodeAll(stream, nil)})
	})
}

func give(ctx context.Context, out chan<- message, m message) error {
	select {
	case out <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// produceOurs works like a collector: a Diverter distributes the reports by their flows.
func (r *rawRun) produceOurs(ctx context.Context, out chan<- message) error {
	d := sinkkafka.NewDiverter(sinkkafka.DivertConfig{
		Reports: "all", From: "bench", Boot: 1, Key: decode.NewHashKey(1), Slices: rawPartitions, Window: rawWindow,
		Bundle: func(_ int64, partition int, head, value []byte) []byte {
			if h, err := fleet.ReadHead(head); err == nil && h.Kind == fleet.Reports {
				_ = give(ctx, out, message{partition, value}) // it fails when ctx has ended, as chunks does
			}
			return nil
		},
	})
	d.Open(1, func(sink.Encoded) {})
	var last int64
	err := r.chunks(ctx, 128, func(part []*decode.Report) error {
		for _, rep := range part {
			if !d.Takes(rep) {
				return errors.New("a report was not taken")
			}
		}
		d.Divert(0, part)
		last = part[len(part)-1].Time
		return nil
	})
	d.EndWindow(last + int64(rawWindow))
	return err
}

// fetch reads a partition until all reports of the run were read from all of them.
func (r *rawRun) fetch(ctx context.Context, partition int) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	var plain []byte
	var b decode.Batch
	var d arrow.Decoder
	for offset := int64(0); r.read.Load() < int64(r.cfg.Reports); {
		resp, err := r.client.Fetch(ctx, &kafka.FetchRequest{
			Topic: r.topic, Partition: partition, Offset: offset, MinBytes: 1, MaxBytes: 4 << 20, MaxWait: 20 * time.Millisecond,
		})
		if err == nil {
			err = resp.Error
		}
		if err != nil {
			return err
		}
		for {
			rec, err := resp.Records.ReadRecord()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			value, err := kafka.ReadAll(rec.Value)
			if err != nil {
				return err
			}
			offset = rec.Offset + 1
			if plain, err = z.DecodeAll(value, plain[:0]); err != nil {
				return err
			}
			b.Reset()
			if !r.ours {
				if err := libraryRead(plain, &b); err != nil {
					return err
				}
				r.read.Add(int64(len(b.Reports)))
				continue
			}
			if err := d.Open(plain); err != nil {
				return err
			}
			for more := true; more; b.Reset() { // as much at a time as shards take
				more = d.Next(&b, 128)
				r.read.Add(int64(len(b.Reports)))
			}
		}
	}
	return nil
}
