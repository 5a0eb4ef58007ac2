package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// candidate is a member in this process.
type candidate struct {
	group *kafka.Group
	terms chan *kafka.Term
	stop  func() error
}

func stand(t *testing.T, b *servertest.Broker, name string) *candidate {
	t.Helper()
	k := b.Client()
	log := kafka.NewLog(k, kafka.DefaultLogConfig())
	topic := b.Prefix + "plans"
	// Heartbeats are so rare that a member that was given up does not learn it in this test.
	group := kafka.NewGroup(k, log, kafka.GroupConfig{Name: b.Prefix + "control", Topics: map[string]int{topic: 1}, Session: time.Minute, Rebalance: 10 * time.Second}, nil)
	c := &candidate{group: group, terms: make(chan *kafka.Term, 10)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- kafka.Lead(ctx, kafka.LeadConfig{Log: log, Group: group, Topic: topic, Name: name, Timeout: 2 * time.Second}, func(ctx context.Context, term *kafka.Term) error {
			c.terms <- term
			<-ctx.Done()
			return nil
		})
	}()
	c.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A controller that its group has given up, and that does not know it, is refused before anything leaves it. What it writes all the
// same is not what a successor finds.
func TestFenced(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "plans"
	b.CreateTopic(topic, 1, "cleanup.policy=compact")
	put := func(term *kafka.Term, epoch uint32, plan string) error {
		return term.Put(t.Context(), epoch, json.RawMessage(plan))
	}
	watch := kafka.NewObserver(kafka.LeadConfig{Log: kafka.NewLog(b.Client(), kafka.DefaultLogConfig()), Topic: topic, Timeout: time.Minute})
	leads := func(want kafka.Leader) {
		t.Helper()
		if got, err := watch.Leader(t.Context()); err != nil || got != want {
			t.Errorf("who looks on sees %+v, %v, want %+v", got, err, want)
		}
	}
	leads(kafka.Leader{})
	one := stand(t, b, "one")
	first := <-one.terms
	leads(kafka.Leader{Name: "one", Term: 1})
	if first.Epoch() != 0 || first.Plan() != nil || first.Number() != 1 {
		t.Errorf("the first term begins with epoch %d and plan %s, and is number %d", first.Epoch(), first.Plan(), first.Number())
	}
	if err := errors.Join(put(first, 7, `"a"`), put(first, 7, `"a"`), first.Holds(t.Context()), put(first, 9, `"b"`)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		epoch uint32
		plan  string
	}{{8, `"c"`}, {0, `"c"`}, {1<<32 - 1, `"c"`}, {10, `{`}, {10, ``}} {
		if put(first, wrong.epoch, wrong.plan) == nil {
			t.Errorf("epoch %d with %s is taken", wrong.epoch, wrong.plan)
		}
	}

	member := one.group.Stats().Member
	if _, err := b.Client().LeaveGroup(t.Context(), &client.LeaveGroupRequest{GroupID: b.Prefix + "control", Members: []client.LeaveGroupRequestMember{{ID: member}}}); err != nil {
		t.Fatal(err)
	}
	two := stand(t, b, "two")
	second := <-two.terms
	if second.Epoch() != 9 || string(second.Plan()) != `"b"` || second.Number() <= first.Number() {
		t.Errorf("the second term begins with epoch %d and plan %s, and is number %d", second.Epoch(), second.Plan(), second.Number())
	}
	if first.Holds(t.Context()) == nil {
		t.Error("who was given up holds")
	}
	if put(first, 10, `"zombie"`) == nil {
		t.Error("who was given up may put a plan")
	}
	if put(second, 9, `"c"`) == nil {
		t.Error("an epoch of the term before is taken")
	}
	if err := errors.Join(second.Holds(t.Context()), put(second, 10, `"c"`)); err != nil {
		t.Fatal(err)
	}
	if put(first, 4000, `"zombie"`) == nil {
		t.Error("who was given up may put a plan")
	}
	if l, err := watch.Leader(t.Context()); err != nil || l.Name != "two" || l.Term != second.Number() {
		t.Errorf("who looks on sees %+v, %v", l, err)
	}
	if err := errors.Join(one.stop(), two.stop()); err != nil {
		t.Fatal(err)
	}
	// What cannot be read is passed over, and so is what claims a term behind which there is none.
	log := kafka.NewLog(b.Client(), kafka.DefaultLogConfig())
	var bad []ingest.Message
	for _, m := range []struct{ key, value string }{
		{"plan/x", `{"version":1,"term":18446744073709551615,"generation":1,"writer":"x","epoch":11}`},
		{"plan/x", `{"version":1,"term":5,"generation":1,"writer":"x","epoch":4294967295}`},
		{"plan/x", `{"version":1,"term":5000,"generation":1,"writer":"y","epoch":9000}`}, {"plan/", `{"version":1,"term":5000}`},
		{"plan/x", `[]`}, {"", ``}, {"other", `{`},
	} {
		bad = append(bad, ingest.Message{Key: []byte(m.key), Value: []byte(m.value)})
	}
	if _, err := log.Append(t.Context(), topic, 0, bad...); err != nil {
		t.Fatal(err)
	}
	three := stand(t, b, "three")
	third := <-three.terms
	if string(third.Plan()) != `"c"` || third.Epoch() != 4000 || third.Number() <= second.Number() {
		t.Errorf("the third term begins with epoch %d and plan %s, and is number %d", third.Epoch(), third.Plan(), third.Number())
	}
	if err := put(third, 4001, `"d"`); err != nil {
		t.Error(err)
	}
}

// silent is a group that takes a partition back and stays silent, until a test makes it assign the partition again.
type silent struct {
	topic  string
	second chan struct{}
}

func (s *silent) Run(ctx context.Context, m ingest.Member) error {
	for id := 1; ; id += 2 {
		lost, lose := context.WithCancelCause(ctx)
		defer lose(nil)
		g := &ingest.Generation{ID: id, Partitions: map[string][]int{s.topic: {0}}, Lost: lost, Commit: func(context.Context, string, int, int64) error { return nil }}
		m.Assigned(g)
		select {
		case <-ctx.Done():
			return nil
		case <-s.second:
		}
		m.Revoke(ctx, g)
		select {
		case <-ctx.Done():
			return nil
		case <-s.second:
		}
	}
}

// A term ends when the group has taken the partition back and then stays silent, as when the brokers went away in
// between.
func TestTermOfSilentGroup(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "plans"
	b.CreateTopic(topic, 1, "cleanup.policy=compact")
	log := kafka.NewLog(b.Client(), kafka.DefaultLogConfig())
	g := &silent{topic, make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	causes, begun, done := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- kafka.Lead(ctx, kafka.LeadConfig{Log: log, Group: g, Topic: topic, Name: "one", Timeout: time.Minute, Hold: 50 * time.Millisecond}, func(ctx context.Context, _ *kafka.Term) error {
			begun <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
	}()
	for range 2 {
		<-begun
		g.second <- struct{}{}
		if err := <-causes; !errors.Is(err, kafka.ErrLost) || !strings.Contains(err.Error(), "nothing was heard from the group") {
			t.Errorf("the term ends with %v", err)
		}
		g.second <- struct{}{}
	}
	<-begun
	cancel()
	if err := <-causes; err == nil {
		t.Error("the last term goes on")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
