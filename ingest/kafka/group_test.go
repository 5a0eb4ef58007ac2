package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// recorder is a member that notes its calls.
type recorder struct {
	mu    sync.Mutex
	gens  []*ingest.Generation
	open  bool
	drain time.Duration // how long revoking takes
	wrong []string
}

func (r *recorder) Assigned(g *ingest.Generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.wrong = append(r.wrong, "assigned twice")
	}
	r.open = true
	r.gens = append(r.gens, g)
}

func (r *recorder) Revoke(ctx context.Context, g *ingest.Generation) {
	r.mu.Lock()
	drain := r.drain
	r.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(drain):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || r.gens[len(r.gens)-1] != g {
		r.wrong = append(r.wrong, "revoked what is not assigned")
	}
	r.open = false
}

func (r *recorder) setDrain(d time.Duration) {
	r.mu.Lock()
	r.drain = d
	r.mu.Unlock()
}

// now is the generation that the member has, nil if it has none.
func (r *recorder) now() *ingest.Generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return nil
	}
	return r.gens[len(r.gens)-1]
}

type testMember struct {
	*recorder
	group *Group
	stop  func() error
}

func join(t *testing.T, b *servertest.Broker, cfg GroupConfig, drain time.Duration) *testMember {
	t.Helper()
	client := b.Client()
	m := &testMember{recorder: &recorder{drain: drain}, group: NewGroup(client, NewLog(client, DefaultLogConfig()), cfg, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.group.Run(ctx, m.recorder) }()
	m.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := m.stop(); err != nil {
			t.Error(err)
		}
		for _, w := range m.wrong {
			t.Error(w)
		}
	})
	return m
}

// shares returns how many partitions each of the members has, if all have the same generation and none has what another one has.
func shares(members ...*testMember) []int {
	var out []int
	seen := map[string]bool{}
	id := 0
	for _, m := range members {
		g := m.now()
		if g == nil || id != 0 && g.ID != id {
			return nil
		}
		id = g.ID
		n := 0
		for topic, parts := range g.Partitions {
			for _, p := range parts {
				seen[fmt.Sprint(topic, "/", p)] = true
				n++
			}
		}
		out = append(out, n)
	}
	sum := 0
	for _, n := range out {
		sum += n
	}
	if len(seen) != sum {
		return nil
	}
	return out
}

func TestGroup(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	cfg := GroupConfig{Name: b.Prefix + "group", Topics: map[string]int{b.Prefix + "a": 4, b.Prefix + "b": 1}, Session: 6 * time.Second, Rebalance: 10 * time.Second}
	b.CreateTopic(b.Prefix+"a", 6) // two more than there are slices: they belong to no member
	b.CreateTopic(b.Prefix+"b", 1)
	topic := b.Prefix + "a"

	one := join(t, b, cfg, 0)
	testkit.Until(t, "one member has all", func() bool { return slices.Equal(shares(one), []int{5}) })
	first := one.now()
	if err := first.Commit(t.Context(), topic, 2, 17); err != nil {
		t.Error(err)
	}
	if at, err := one.group.committed(t.Context(), topic, 2); at != 17 || err != nil {
		t.Errorf("committed %d, %v; want 17", at, err)
	}
	if at, err := one.group.committed(t.Context(), topic, 3); at != -1 || err != nil {
		t.Errorf("committed %d, %v; want none", at, err)
	}

	// Letting go takes longer than half a session, and the membership lasts.
	one.setDrain(4 * time.Second)
	two := join(t, b, cfg, 0)
	testkit.Until(t, "two members share", func() bool { s := shares(one, two); slices.Sort(s); return slices.Equal(s, []int{2, 3}) })
	kept := 0
	for _, p := range one.now().Partitions[topic] {
		if slices.Contains(first.Partitions[topic], p) {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("of what one had it kept %d partitions of %v, and has %v", kept, first.Partitions, one.now().Partitions)
	}
	if one.group.Stats().Lost != 0 {
		t.Error("a generation was lost while it was let go of")
	}
	// A commit for the old generation is refused with an error.
	if err := first.Commit(t.Context(), topic, 2, 3); !lost(err) {
		t.Errorf("commit of an old generation: %v", err)
	}
	if at, _ := one.group.committed(t.Context(), topic, 2); at != 17 || one.group.Stats().Refused != 1 {
		t.Errorf("committed %d, %d refused; want 17 and 1", at, one.group.Stats().Refused)
	}

	// One leaves in order, and the other one need not wait for its session to end.
	began := time.Now()
	one.setDrain(0)
	if err := one.stop(); err != nil {
		t.Error(err)
	}
	testkit.Until(t, "the rest has all", func() bool { return slices.Equal(shares(two), []int{5}) })
	if d := time.Since(began); d > cfg.Session {
		t.Logf("leaving took %v", d)
	}
	if s := two.group.Stats(); s.Rebalances < 2 || s.Partitions != 5 || s.Member == "" {
		t.Errorf("stats: %+v", s)
	}
}

// A member that was paused for longer than the session learns that its partitions are gone, and cannot set offsets.
func TestZombie(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "z"
	cfg := GroupConfig{Name: b.Prefix + "group", Topics: map[string]int{topic: 2}, Session: 6 * time.Second, Rebalance: 6 * time.Second}
	b.CreateTopic(topic, 2)
	paused := join(t, b, cfg, 0)
	testkit.Until(t, "one member has all", func() bool { return slices.Equal(shares(paused), []int{2}) })
	zombie := paused.now()
	// Its group forgets it, as it does with one that was paused for longer than the session.
	_, err := paused.group.client.LeaveGroup(t.Context(), leave(cfg.Name, zombie.Member))
	if err != nil {
		t.Fatal(err)
	}
	other := join(t, b, cfg, 0)
	testkit.Until(t, "the partitions are lost", func() bool { return zombie.Lost.Err() != nil })
	if err := zombie.Commit(t.Context(), topic, 0, 5); !lost(err) {
		t.Errorf("commit of a zombie: %v", err)
	}
	testkit.Until(t, "both have one again", func() bool { return slices.Equal(shares(paused, other), []int{1, 1}) })
	if s := paused.group.Stats(); s.Lost != 1 || s.Refused != 1 {
		t.Errorf("stats: %+v", s)
	}
	all := maps.Clone(paused.now().Partitions)
	if len(all[topic]) != 1 {
		t.Errorf("partitions %v", all)
	}
}

func TestFewPartitions(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "few"
	b.CreateTopic(topic, 2)
	client := b.Client()
	g := NewGroup(client, NewLog(client, DefaultLogConfig()), GroupConfig{Name: b.Prefix + "g", Topics: map[string]int{topic: 3}, Session: time.Second, Rebalance: time.Second}, nil)
	err := g.Run(t.Context(), &recorder{})
	if err == nil || err.Error() != (&fewPartitionsError{topic, 2, 3}).Error() {
		t.Errorf("%v", err)
	}
}

func leave(group, member string) *kafka.LeaveGroupRequest {
	return &kafka.LeaveGroupRequest{GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: member}}}
}

// lines counts the lines of a log.
type lines struct{ n atomic.Int64 }

func (l *lines) Write(b []byte) (int, error) {
	l.n.Add(1)
	return len(b), nil
}

// Brokers that are away are logged once, and not at every attempt to reach them.
func TestAwayIsReportedOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	client := &kafka.Client{Addr: kafka.TCP(testkit.FreeAddr(t))}
	var said lines
	g := NewGroup(client, NewLog(client, DefaultLogConfig()), GroupConfig{
		Name: "away", Topics: map[string]int{"away": 1}, Session: time.Second, Rebalance: time.Second,
	}, slog.New(slog.NewTextHandler(&said, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, &recorder{}) }()
	testkit.Until(t, "joining has failed three times", func() bool { return g.Stats().Errors >= 3 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := said.n.Load(); n != 1 {
		t.Errorf("the log has %d lines, want one", n)
	}
}
