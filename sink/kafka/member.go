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
	"github.com/hopscope/hopscope/inference/fleet/roster"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/retry"
)

// Identity is the name and the parameters with which a collector joins a fleet.
type Identity struct {
	Name   string        // of the collector, which no other one of the fleet has
	Params roster.Params // as the collector has them
	Seed   uint64        // of which Params has the mark
	// Status returns the collector's entry in the roster, a [roster.Member]: its present run, and whether it leaves.
	// It may be nil.
	Status func(boot uint64, left bool) []byte
	// Now reads the wall clock that the collector's windows end by; nil reads the machine's.
	Now func() time.Time
}

// MismatchError is returned when a member cannot belong to the fleet, with the reason.
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

// clockCosts is the consequence of a clock that is off too far.
const clockCosts = "what it counts now goes under wrong times and is not sent"

// member is the collector as one of a fleet.
type member struct {
	w     *Writer
	id    Identity
	table *brokers.Table

	extra atomic.Int64 // partitions beyond those that are used

	turn sync.Mutex // one visit at a time
	hold hold       // of its name

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
	// statusEvery is how often a member publishes its status, unless windows are shorter.
	statusEvery = 5 * time.Second
	leastEvery  = time.Second
)

// Join makes the collector a member. It compares the collector's parameters with those of the fleet, and returns a
// [*MismatchError] if they differ. If Kafka refuses access, or is away for more than ten seconds, Join returns nil.
// The comparison then follows once Kafka answers. Until then nothing is sent, and [Stats] has the reason.
func (w *Writer) Join(ctx context.Context, id Identity) error {
	m := &member{w: w, id: id, done: make(chan struct{})}
	if id.Now != nil {
		w.clock = id.Now
	}
	mine, orders := roster.MemberKey(roster.Collector, id.Name), roster.RedrawKey(id.Name)
	m.table = w.client.NewTable(w.client.Topic(brokers.Roster), brokers.TableBounds{
		Keys: 3, Value: 1 << 16, Bytes: 1 << 18, Keep: func(key string) bool { return key == roster.ParamsKey || key == mine || key == orders },
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
	final := func(err error) bool {
		return needsPerson(err) || errors.As(err, new(*fleet.ClockError)) || errors.As(err, new(*NameError))
	}
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
	for retry.Sleep(ctx, m.every()) {
		_ = m.syncRoster(ctx) // kept for admit
	}
}

// syncRoster reads the roster, compares the parameters and the clock with it, and publishes the member's status.
func (m *member) syncRoster(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	fits, err := m.compare(ctx)
	if err == nil {
		err = m.claim()
	}
	if err == nil {
		err = m.publishStatus(ctx, false)
	}
	if err == nil && m.w.clockBad() {
		err = &fleet.ClockError{Off: time.Duration(m.w.clockOff.Load()), Window: m.id.Params.Window, Costs: clockCosts}
	}
	if errors.Is(err, context.Canceled) {
		return err // it was asked to stop
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
		if e := (*brokers.Error)(nil); errors.As(err, &e) && e.Kind == brokers.NoTopic {
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

// claim takes the name, or returns its holder.
func (m *member) claim() error {
	key := roster.MemberKey(roster.Collector, m.id.Name)
	value, _ := m.table.Get(key)
	holder, lost := m.hold.observe(key, value, m.w.clock(), m.w.now(), m.silence(), 2*m.id.Params.Window+time.Second)
	if lost { // the other one may have the numbers that this one would give next
		m.drawAnew()
	}
	if holder != nil {
		return &NameError{m.id.Name, holder, m.silence()}
	}
	return nil
}

// every is how often the member publishes its status.
func (m *member) every() time.Duration { return max(min(m.id.Params.Window, statusEvery), leastEvery) }

// silence is the time without a record of a name's holder after which another member takes the name.
func (m *member) silence() time.Duration { return 3*m.every() + time.Second }

// partitions counts what the topics have.
func (m *member) partitions(ctx context.Context) error {
	meta, err := m.w.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return m.w.client.Explain(err, brokers.ToDescribe(m.w.client.Topic(brokers.Windows)))
	}
	extra := 0
	for _, t := range meta.Topics {
		short := strings.TrimPrefix(t.Name, m.w.conf.Prefix)
		if short != brokers.Windows && short != brokers.Reports || t.Error != nil {
			continue // a sender that writes to it gets the error
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

// redraw begins a new run when the roster shows that another process has used the names of this one.
func (m *member) redraw() {
	value, ok := m.table.Get(roster.RedrawKey(m.id.Name))
	var order roster.Redraw
	if !ok || json.Unmarshal(value, &order) != nil {
		return
	}
	m.w.mu.Lock()
	ours := order.Boot == m.w.publisher.Boot()
	m.w.mu.Unlock()
	if ours {
		m.drawAnew()
	}
}

// drawAnew continues under another boot.
func (m *member) drawAnew() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	boot := drawBoot()
	m.w.publisher.Redraw(boot)
	m.w.diverter.Redraw(boot)
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
		m := roster.Member{Role: roster.Collector, Name: m.id.Name, Boot: boot, Left: left}
		value = m.Append(nil)
	}
	m.hold.note(value)
	before := m.w.clock()
	appended, err := m.table.Put(ctx, roster.MemberKey(roster.Collector, m.id.Name), value)
	if err != nil {
		return err
	}
	m.w.seeClock(before, m.w.clock(), appended)
	return nil
}

// Unfit returns why the collector sends nothing that it receives now until an operator acts, or nil if it sends.
// Another process has the name ([*NameError]), the clock is off too far ([*fleet.ClockError]), or the settings are
// those of another fleet ([*MismatchError]).
func (w *Writer) Unfit() error {
	if w.member == nil {
		return nil
	}
	err := w.member.problem()
	if errors.As(err, new(*NameError)) || errors.As(err, new(*fleet.ClockError)) || errors.As(err, new(*MismatchError)) {
		return err
	}
	return nil
}

// problem returns the reason why this process cannot be a member.
func (m *member) problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// admit returns nil as soon as sending is allowed.
func (m *member) admit(ctx context.Context) error {
	m.mu.Lock()
	fits, err := m.fits, m.err
	m.mu.Unlock()
	shut := func() bool { return !fits || needsPerson(err) || errors.As(err, new(*NameError)) }
	if shut() {
		err = m.syncRoster(ctx)
		m.mu.Lock()
		fits = m.fits
		m.mu.Unlock()
	}
	if shut() {
		return err
	}
	return nil // a clock that is off concerns what is counted now, and not what was counted before
}

// leave publishes that the collector ended in order.
func (m *member) leave() error {
	m.stop()
	<-m.done
	m.mu.Lock()
	fits := m.fits
	m.mu.Unlock()
	if !fits || !m.hold.held {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	return m.publishStatus(ctx, true)
}

// Close marks the collector in the roster as having left, and closes the connections. If Kafka is away that is no
// error: the other members will notice.
func (w *Writer) Close() error {
	if w.member != nil && w.member.stop != nil {
		_ = w.member.leave()
	}
	w.land()
	w.client.Close()
	return nil
}
