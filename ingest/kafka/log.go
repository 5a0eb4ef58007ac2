package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// logConfig bounds the amount of one read and one write.
type logConfig struct {
	HeaderKey string        // the header that messages keep; others are passed over
	fetchMax  int           // bytes of an answer, unless a single batch has more
	appendMax int           // bytes of values that are written at once, unless a single one has more
	Wait      time.Duration // for something to come
	Timeout   time.Duration // of everything else
}

// DefaultLogConfig reads up to 4 MiB at once.
func DefaultLogConfig() logConfig {
	return logConfig{fetchMax: 4 << 20, appendMax: 768 << 10, Wait: 250 * time.Millisecond, Timeout: 10 * time.Second}
}

// logStats counts what a [Log] met with.
type logStats struct {
	Messages, Bytes uint64 // read
	Appended        uint64 // messages written
	Errors          uint64 // of calls that were to be repeated
	Corrupt         uint64 // stretches of a partition that cannot be read, passed over
	Gaps            uint64 // stretches that were to be read and are not there any more
}

// Log reads and writes partitions of topics. It is safe for use by several goroutines.
type Log struct {
	client *kafka.Client
	cfg    logConfig

	messages, bytes, appended, errors, corrupt, gaps atomic.Uint64
}

// NewLog reads and writes by a client, whose address is that of the brokers.
func NewLog(client *kafka.Client, cfg logConfig) *Log { return &Log{client: client, cfg: cfg} }

// Stats may be called at any time.
func (l *Log) Stats() logStats {
	return logStats{
		Messages: l.messages.Load(), Bytes: l.bytes.Load(), Appended: l.appended.Load(), Errors: l.errors.Load(),
		Corrupt: l.corrupt.Load(), Gaps: l.gaps.Load(),
	}
}

// partitionError is the failure of a call for a partition.
type partitionError struct {
	Op        string
	Topic     string
	Partition int
	Err       error
}

func (e *partitionError) Error() string {
	return fmt.Sprintf("kafka: %s %s/%d: %v", e.Op, e.Topic, e.Partition, e.Err)
}

// Unwrap returns the reason.
func (e *partitionError) Unwrap() error { return e.Err }

// gapError is returned when the offsets from From on are not in the log. Reading continues at To.
type gapError struct{ From, To int64 }

func (e *gapError) Error() string {
	if e.To < e.From {
		return fmt.Sprintf("the log ends at offset %d, before offset %d that was to be read: brokers lost records that they had confirmed; reading goes on there", e.To, e.From)
	}
	return fmt.Sprintf("offsets %d to %d are gone from the log: retention was shorter than this consumer was away; reading goes on behind them", e.From, e.To-1)
}

// Skipped returns the offsets that are not read.
func (e *gapError) Skipped() (from, to int64) { return e.From, e.To }

// Removed returns the offsets that are not in the partition any more.
func (e *gapError) Removed() (from, to int64) { return e.From, e.To }

// corruptError is returned when the records from From on cannot be read: a checksum does not match or a length is
// impossible. Reading continues at To.
type corruptError struct {
	From, To int64
	Err      error
}

func (e *corruptError) Error() string {
	return fmt.Sprintf("offsets %d to %d cannot be read and are passed over: %v", e.From, e.To-1, e.Err)
}

// Skipped returns the offsets that are not read.
func (e *corruptError) Skipped() (from, to int64) { return e.From, e.To }

// Unwrap returns the reason.
func (e *corruptError) Unwrap() error { return e.Err }

// Bounds returns the first offset of a partition and the one that its next record will have.
func (l *Log) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	p, err := l.listOffsets(ctx, topic, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	return p.FirstOffset, p.LastOffset, err
}

// OffsetAt returns the offset of the first record of a time, ns since 1970, or later ones. If there is none, it is that of the next
// record.
func (l *Log) OffsetAt(ctx context.Context, topic string, partition int, at int64) (int64, error) {
	p, err := l.listOffsets(ctx, topic, kafka.TimeOffsetOf(partition, time.Unix(0, at)))
	if err != nil {
		return 0, err
	}
	for offset := range p.Offsets {
		if offset >= 0 {
			return offset, nil
		}
	}
	_, next, err := l.Bounds(ctx, topic, partition)
	return next, err
}

func (l *Log) listOffsets(ctx context.Context, topic string, what ...kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	var all kafka.PartitionOffsets
	// One call each: a call that names a partition twice is refused.
	for i, w := range what {
		r, err := l.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {w}}})
		if err == nil && len(r.Topics[topic]) != 1 {
			err = errors.New("the answer has no such partition")
		}
		if err == nil {
			err = r.Topics[topic][0].Error
		}
		if err != nil {
			l.errors.Add(1)
			return kafka.PartitionOffsets{}, &partitionError{"list offsets of", topic, w.Partition, err}
		}
		p := r.Topics[topic][0]
		if i == 0 {
			all = p
		} else if w.Timestamp == kafka.LastOffset {
			all.LastOffset = p.LastOffset
		}
	}
	return all, nil
}

// Partitions returns the present number of partitions of a topic by the brokers.
func (l *Log) Partitions(ctx context.Context, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	n := 0
	// A new topic is unknown until the client has requested all topics again.
	err := retry.Backoff{Min: 100 * time.Millisecond}.Do(ctx, nil, func(ctx context.Context) error {
		r, err := l.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err == nil && len(r.Topics) != 1 {
			err = errors.New("the answer does not have it")
		}
		if err != nil {
			return err
		}
		n = len(r.Topics[0].Partitions)
		return r.Topics[0].Error
	})
	if err != nil {
		return 0, fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
	return n, nil
}

// Retention returns how long a topic keeps its records by time; 0 is for ever.
func (l *Log) Retention(ctx context.Context, topic string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	const name = "retention.ms"
	r, err := l.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name}},
	}})
	if err == nil && len(r.Resources) == 1 {
		err = r.Resources[0].Error
		for _, e := range r.Resources[0].ConfigEntries {
			if ms, perr := strconv.ParseInt(e.ConfigValue, 10, 64); e.ConfigName == name && perr == nil {
				if ms < 0 || ms > int64(1<<63-1)/int64(time.Millisecond) {
					return 0, nil
				}
				return time.Duration(ms) * time.Millisecond, nil
			}
		}
	}
	if err == nil {
		err = errors.New("the brokers do not report it")
	}
	return 0, fmt.Errorf("kafka: %s of topic %s: %w", name, topic, err)
}

// Append writes messages, in order, and returns the offset of the first when all replicas that count have all of them. It tries
// again until ctx ends what may pass, so that messages can be there twice.
func (l *Log) Append(ctx context.Context, topic string, partition int, messages ...ingest.Message) (first int64, err error) {
	first = -1
	for len(messages) > 0 {
		n, size := 0, 0
		for n < len(messages) && (n == 0 || size+len(messages[n].Value) <= l.cfg.appendMax) {
			size += len(messages[n].Value)
			n++
		}
		base, err := l.produce(ctx, topic, partition, messages[:n])
		if err != nil {
			return first, &partitionError{"write to", topic, partition, err}
		}
		if first < 0 {
			first = base
		}
		l.appended.Add(uint64(n))
		messages = messages[n:]
	}
	return first, nil
}

func (l *Log) produce(ctx context.Context, topic string, partition int, messages []ingest.Message) (first int64, err error) {
	began := time.Now()
	final := func(err error) bool {
		l.errors.Add(1)
		// A new topic is not known to all brokers at once.
		return !passes(err) || unknown(err) && time.Since(began) > l.cfg.Timeout
	}
	err = retry.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second, Attempt: l.cfg.Timeout}.Do(ctx, final, func(once context.Context) error {
		r, err := l.client.Produce(once, &kafka.ProduceRequest{
			Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(l.records(messages)...),
		})
		if err != nil {
			return err
		}
		first = r.BaseOffset
		return r.Error
	})
	return first, err
}

// records returns messages in the form of the client. They can be read once.
func (l *Log) records(messages []ingest.Message) []kafka.Record {
	records := make([]kafka.Record, len(messages))
	for i := range messages {
		m := &messages[i]
		r := &records[i]
		if m.Time != 0 {
			r.Time = time.Unix(0, m.Time)
		}
		if m.Key != nil {
			r.Key = kafka.NewBytes(m.Key)
		}
		if m.Value != nil {
			r.Value = kafka.NewBytes(m.Value)
		}
		if m.Head != nil {
			r.Headers = []kafka.Header{{Key: l.cfg.HeaderKey, Value: m.Head}}
		}
	}
	return records
}

// passes reports whether trying again may help. Everything may but a refusal by the brokers that they mean.
func passes(err error) bool {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		return code.Temporary() || code == kafka.UnknownTopicOrPartition
	}
	return true
}

// unknown reports whether the brokers do not know the topic or the partition.
func unknown(err error) bool {
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// reader reads one partition. It has one user at a time.
type reader struct {
	log       *Log
	topic     string
	partition int
	offset    int64
	high      int64
	most      int // bytes of an answer
	trouble   int // fetches that failed in a row although the brokers answer
}

// Reader reads a partition from an offset on.
func (l *Log) Reader(topic string, partition int, offset int64) ingest.LogReader {
	return &reader{log: l, topic: topic, partition: partition, offset: offset, high: -1, most: l.cfg.fetchMax}
}

// Offset is that of the next message.
func (r *reader) Offset() int64 { return r.offset }

// goTo makes offset that of the next message.
func (r *reader) goTo(offset int64) { r.offset, r.trouble = offset, 0 }

// Limit bounds the bytes that one answer has. There is one batch in it at least.
func (r *reader) Limit(bytes int) { r.most = max(1, min(bytes, r.log.cfg.fetchMax)) }

// High is the offset that the next record of the partition will have, as the last answer said; -1 before the first.
func (r *reader) High() int64 { return r.high }

// readable is how often a fetch has to fail before its records count as corrupt. The brokers must meanwhile answer
// other requests about the same partition.
const readable = 3

// Next returns the next messages, in the order of their offsets, which need not be consecutive. It waits a moment for
// them, and returns none if none came. After an error it can be called again. After a gapError or a corruptError it
// continues elsewhere.
func (r *reader) Next(ctx context.Context) ([]ingest.Message, error) {
	got, err := r.fetch(ctx, r.offset, r.most, r.log.cfg.Wait)
	if len(got) > 0 {
		r.trouble = 0
		r.offset = got[len(got)-1].Offset + 1
		r.log.messages.Add(uint64(len(got)))
		for i := range got {
			r.log.bytes.Add(uint64(len(got[i].Value)))
		}
		return got, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && r.high > r.offset: // records without content, as compaction leaves them
		err = errors.New("the brokers give no record although there are more")
	case err == nil:
		r.trouble = 0
		return nil, nil
	case errors.Is(err, kafka.OffsetOutOfRange):
		return nil, r.leap(ctx)
	}
	r.log.errors.Add(1)
	fail := func(err error) error { return &partitionError{"read", r.topic, r.partition, err} }
	if !suspicious(err) {
		r.trouble = 0
		return nil, fail(err)
	}
	_, next, berr := r.log.Bounds(ctx, r.topic, r.partition)
	if berr != nil {
		r.trouble = 0
		return nil, fail(errors.Join(err, berr))
	}
	if r.trouble++; r.trouble < readable {
		return nil, fail(err)
	}
	to, perr := r.behind(ctx, next)
	if perr != nil {
		return nil, fail(perr)
	}
	e := &corruptError{r.offset, to, err}
	r.log.corrupt.Add(1)
	r.goTo(to)
	return nil, fail(e)
}

// suspicious reports whether an error may come from the records that were to be read: it is neither one of the network
// nor an answer.
func suspicious(err error) bool {
	if _, ok := errors.AsType[kafka.Error](err); ok {
		return errors.Is(err, kafka.InvalidMessage)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return false
	}
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// leap moves to the nearest offset that exists.
func (r *reader) leap(ctx context.Context) error {
	first, next, err := r.log.Bounds(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}
	e := &gapError{r.offset, first}
	switch {
	case r.offset > next:
		e.To = next
	case r.offset >= first:
		return nil // it has come back
	}
	r.log.gaps.Add(1)
	r.goTo(e.To)
	return &partitionError{"read", r.topic, r.partition, e}
}

// behind finds the least offset, behind one that cannot be read, from which something can be read, or next if there is none.
func (r *reader) behind(ctx context.Context, next int64) (int64, error) {
	can := func(offset int64) (bool, error) {
		if offset >= next {
			return true, nil
		}
		// The brokers give one batch at least, and with this bound no more.
		got, err := r.fetch(ctx, offset, 1, r.log.cfg.Wait)
		if err != nil && !suspicious(err) {
			return false, err
		}
		return len(got) > 0, nil
	}
	bad, good := r.offset, int64(-1)
	for step := int64(1); good < 0; step *= 2 {
		at := min(bad+step, next)
		ok, err := can(at)
		if err != nil {
			return 0, err
		}
		if ok {
			good = at
		} else {
			bad = at
		}
	}
	for good-bad > 1 {
		at := bad + (good-bad)/2
		ok, err := can(at)
		if err != nil {
			return 0, err
		}
		if ok {
			good = at
		} else {
			bad = at
		}
	}
	return good, nil
}

// fetch returns the messages from an offset on. With messages, an error concerns the place after them.
func (r *reader) fetch(ctx context.Context, offset int64, most int, wait time.Duration) ([]ingest.Message, error) {
	once, cancel := context.WithTimeout(ctx, wait+r.log.cfg.Timeout)
	defer cancel()
	res, err := r.log.client.Fetch(once, &kafka.FetchRequest{
		Topic: r.topic, Partition: r.partition, Offset: offset, MinBytes: 1, MaxBytes: int64(most), MaxWait: wait,
	})
	if err != nil {
		return nil, err
	}
	if c, ok := res.Records.(io.Closer); ok {
		defer c.Close()
	}
	if res.Error != nil {
		return nil, res.Error
	}
	r.high = res.HighWatermark
	var got []ingest.Message
	for {
		record, err := res.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		m, err := message(record, r.log.cfg.HeaderKey)
		if err != nil {
			return got, err
		}
		// A batch comes whole, also when the offset is inside of it.
		if m.Offset >= offset && (len(got) == 0 || m.Offset > got[len(got)-1].Offset) {
			got = append(got, m)
		}
	}
}

func message(r *protocol.Record, header string) (m ingest.Message, err error) {
	m.Offset, m.Time = r.Offset, r.Time.UnixNano()
	read := func(b protocol.Bytes) (all []byte) {
		if b == nil {
			return nil
		}
		var rerr error
		all, rerr = protocol.ReadAll(b)
		err = errors.Join(err, rerr)
		_ = b.Close() // of memory
		return all
	}
	m.Key, m.Value = read(r.Key), read(r.Value)
	for i := range r.Headers {
		if r.Headers[i].Key == header {
			m.Head = append([]byte{}, r.Headers[i].Value...)
			break
		}
	}
	return m, err
}
