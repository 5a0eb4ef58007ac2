package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/ingest/retry"
)

// Identity is who joins a fleet.
type Identity struct {
	Name   string       // of the collector, which no other one of the fleet has
	Params fleet.Params // as the collector has them
	Seed   uint64       // of which Params has the mark
	// Status gives what the collector says of itself in the roster, a [fleet.Member]: its present run, and whether it leaves.
	// It may be nil.
	Status func(boot uint64, left bool) []byte
}

// MismatchError says why a member cannot belong to the fleet.
type MismatchError struct {
	Fleet       string   // name of the topic
	Differences []string // nil where the fleet has no parameters yet
}

func (e *MismatchError) Error() string {
	if len(e.Differences) == 0 {
		return fmt.Sprintf("kafka: %s does not say what the members of the fleet have in common; say it with: hopscope kafka topics create", e.Fleet)
	}
	return fmt.Sprintf("kafka: this collector does not fit into the fleet of %s: %s", e.Fleet, strings.Join(e.Differences, "; "))
}

// clockError says that this machine's clock and Kafka's differ by more than a window.
type clockError struct{ Off, Window time.Duration }

func (e *clockError) Error() string {
	direction := "ahead of"
	if e.Off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("kafka: the clock of this machine is %v %s Kafka's, which is more than a window of %v: what it counts now goes under wrong times and is not sent; set the clock (NTP)",
		e.Off.Abs().Round(time.Millisecond), direction, e.Window)
}

// member is the collector as one of a fleet.
type member struct {
	w     *Writer
	id    Identity
	table *conn.Table

	extra atomic.Int64 // partitions beyond those that are used

	turn sync.Mutex // one visit at a time

	mu   sync.Mutex
	fits bool  // the parameters are those of the fleet
	err  error // of the last visit

	stop context.CancelFunc
	done chan struct{}
}

const (
	// joinTimeout is how long the start of a collector waits for Kafka.
	joinTimeout = 10 * time.Second
	// leaveTimeout is how long its end does.
	leaveTimeout = 5 * time.Second
	// statusEvery is how often a member tells how it is, unless windows are shorter.
	statusEvery = 5 * time.Second
	leastEvery  = time.Second
)

// Join makes the collector a member. It compares the collector's parameters with those of the fleet: a [*MismatchError]
// says that it cannot be one. Where Kafka is away for more than ten seconds, or lets nobody in, Join gives nil all the same
// and the comparison is made once Kafka answers; until then nothing is sent, and [Stats] says why.
func (w *Writer) Join(ctx context.Context, id Identity) error {
	m := &member{w: w, id: id, done: make(chan struct{})}
	mine := fleet.RedrawKey(id.Name)
	m.table = w.client.NewTable(w.client.Topic(conn.Roster), conn.TableBounds{
		Keys: 2, Value: 1 << 16, Bytes: 1 << 18, Keep: func(key string) bool { return key == fleet.ParamsKey || key == mine },
	})
	boot := drawBoot()
	w.diverter.identify(id.Name, boot, decode.NewHashKey(id.Seed), id.Params.Window)
	w.mu.Lock()
	w.publisher = fleet.NewPublisher(fleet.PublisherConfig{
		From: id.Name, Boot: boot, Slicer: slicer(id.Seed, &id.Params), Window: int64(id.Params.Window), MaxSize: w.conf.MaxMessageBytes,
	})
	w.mu.Unlock()
	w.member = m

	first, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	final := func(err error) bool { return needsPerson(err) || errors.As(err, new(*clockError)) }
	err := retry.Backoff{Min: 500 * time.Millisecond}.Do(first, final, m.syncRoster)
	if errors.As(err, new(*MismatchError)) {
		w.member = nil
		return err
	}
	if ctx.Err() != nil {
		w.member = nil
		return context.Cause(ctx)
	}
	run, stop := context.WithCancel(context.Background())
	m.stop = stop
	go m.run(run)
	return nil
}

// run visits the roster until ctx ends.
func (m *member) run(ctx context.Context) {
	defer close(m.done)
	every := max(min(m.id.Params.Window, statusEvery), leastEvery)
	for retry.Sleep(ctx, every) {
		_ = m.syncRoster(ctx) // kept for admit
	}
}

// syncRoster reads the roster, holds the parameters and the clock against it, and says how the member is.
func (m *member) syncRoster(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	fits, err := m.compare(ctx)
	if err == nil {
		err = m.publishStatus(ctx, false)
	}
	if err == nil && m.w.clockBad() {
		err = &clockError{time.Duration(m.w.clockOff.Load()), m.id.Params.Window}
	}
	if errors.Is(err, context.Canceled) {
		return err // it was told to stop
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if fits || errors.As(err, new(*MismatchError)) {
		m.fits = fits // what was found once holds for as long as nothing speaks against it
	}
	m.err = err
	return err
}

// compare reads the roster as it is now.
func (m *member) compare(ctx context.Context) (fits bool, _ error) {
	if _, err := m.table.Refresh(ctx); err != nil {
		if e := (*conn.Error)(nil); errors.As(err, &e) && e.Kind == conn.NoTopic {
			return false, &MismatchError{Fleet: m.table.Topic()}
		}
		return false, err
	}
	if err := compareParams(m.table, &m.id.Params); err != nil {
		return false, err
	}
	if err := m.partitions(ctx); err != nil {
		return false, err
	}
	m.redraw()
	return true, nil
}

// partitions counts what the topics have.
func (m *member) partitions(ctx context.Context) error {
	meta, err := m.w.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return m.w.client.Explain(err, conn.Describe(m.w.client.Topic(conn.Windows)))
	}
	extra := 0
	for _, t := range meta.Topics {
		short := strings.TrimPrefix(t.Name, m.w.conf.Prefix)
		if short != conn.Windows && short != conn.Reports || t.Error != nil {
			continue // whoever writes to it is told
		}
		n := len(t.Partitions) - m.id.Params.Slices
		if n < 0 {
			return &MismatchError{t.Name, []string{fmt.Sprintf("partitions: the topic has %d, and the fleet has %d slices", len(t.Partitions), m.id.Params.Slices)}}
		}
		extra += n
	}
	m.extra.Store(int64(extra))
	return nil
}

// redraw begins a new run when the roster says that somebody else has used the names of this one.
func (m *member) redraw() {
	value, ok := m.table.Get(fleet.RedrawKey(m.id.Name))
	var order fleet.Redraw
	if !ok || json.Unmarshal(value, &order) != nil {
		return
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if order.Boot == m.w.publisher.Boot() {
		boot := drawBoot()
		m.w.publisher.Redraw(boot)
		m.w.diverter.Redraw(boot)
	}
}

// publishStatus writes the member's status. What Kafka answers has its clock.
func (m *member) publishStatus(ctx context.Context, left bool) error {
	m.w.mu.Lock()
	boot := m.w.publisher.Boot()
	m.w.mu.Unlock()
	var value []byte
	if m.id.Status != nil {
		value = m.id.Status(boot, left)
	} else {
		m := fleet.Member{Role: fleet.Collector, Name: m.id.Name, Boot: boot, Left: left}
		value = m.Append(nil)
	}
	before := m.w.clock()
	appended, err := m.table.Put(ctx, fleet.MemberKey(fleet.Collector, m.id.Name), value)
	if err != nil {
		return err
	}
	m.w.seeClock(before, m.w.clock(), appended)
	return nil
}

// problem is what keeps the member from being one.
func (m *member) problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// admit gives nil as soon as something may be sent.
func (m *member) admit(ctx context.Context) error {
	m.mu.Lock()
	fits, err := m.fits, m.err
	m.mu.Unlock()
	if !fits || needsPerson(err) {
		err = m.syncRoster(ctx)
		m.mu.Lock()
		fits = m.fits
		m.mu.Unlock()
	}
	if !fits || needsPerson(err) {
		return err
	}
	return nil // a clock that is off concerns what is counted now, and not what was counted before
}

// leave says that the collector ended in order.
func (m *member) leave() error {
	m.stop()
	<-m.done
	m.mu.Lock()
	fits := m.fits
	m.mu.Unlock()
	if !fits {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	return m.publishStatus(ctx, true)
}

// Close says in the roster that the collector has left, and closes the connections. That Kafka is away is no error: the
// others will notice.
func (w *Writer) Close() error {
	if w.member != nil && w.member.stop != nil {
		_ = w.member.leave()
	}
	w.client.Close()
	return nil
}
