package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// GroupConfig is the settings of a group, and the partitions that it shares out.
type GroupConfig struct {
	Name   string
	Topics map[string]int // how many partitions of each, the first ones; further ones belong to no member
	// Session is the time that the group waits for a heartbeat of a member before it reassigns its partitions.
	// Rebalance is the time that a member may take to release them when others join or leave.
	Session, Rebalance time.Duration
}

// The name and the kind of the protocol by which the members agree. Members of a group have to have the same.
const (
	groupProtocolType = "consumer"
	groupProtocol     = "hopscope-1"
)

// groupStats is the state of a membership.
type groupStats struct {
	Member     string
	Generation int // 0 outside of one
	Partitions int // that the member owns
	Rebalances uint64
	Lost       uint64 // generations that ended before the member had released its partitions: a pause longer than the session
	Refused    uint64 // commits that came too late, which the group refused
	Errors     uint64
	lastError  string
	// TookOver is the duration of the last rebalance, from the release to the new generation.
	TookOver time.Duration
}

// Group is a member of a consumer group.
type Group struct {
	client *kafka.Client
	log    *Log
	cfg    GroupConfig
	logger Logger

	id    string // that the group assigned
	owned map[string][]int

	mu    sync.Mutex
	stats groupStats
}

// NewGroup prepares a membership. Log has the partitions of topics; logger may be nil.
func NewGroup(client *kafka.Client, log *Log, cfg GroupConfig, logger Logger) *Group {
	return &Group{client: client, log: log, cfg: cfg, logger: orSilent(logger)}
}

// Stats may be called at any time.
func (g *Group) Stats() groupStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

func (g *Group) note(change func(s *groupStats)) {
	g.mu.Lock()
	change(&g.stats)
	g.mu.Unlock()
}

func (g *Group) failed(err error) {
	g.note(func(s *groupStats) { s.Errors++; s.lastError = err.Error() })
}

// logEvery is the time between two log lines about joins that fail: brokers can be away for hours.
const logEvery = time.Minute

// Run is a member of the group until ctx ends, then releases the partitions and leaves. It returns an error only for
// what does not pass by itself. That is a topic with too few partitions, a group in use by others, or a missing
// permission.
func (g *Group) Run(ctx context.Context, m ingest.Member) error {
	defer func() {
		if g.id != "" {
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Session)
			_, _ = g.client.LeaveGroup(leave, &kafka.LeaveGroupRequest{GroupID: g.cfg.Name, Members: []kafka.LeaveGroupRequestMember{{ID: g.id}}})
			cancel() // the session runs out where that failed
		}
	}()
	began := time.Now()
	var loggedAt time.Time // that joining fails
	wait := retry.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}
	for ctx.Err() == nil {
		gen, err := g.join(ctx)
		switch expected, worthLogging := joinError(err); {
		case err == nil:
			wait.Reset()
			loggedAt = time.Time{}
			g.note(func(s *groupStats) {
				s.Member, s.Generation, s.Partitions, s.TookOver = gen.Member, gen.ID, count(gen.Partitions), time.Since(began)
				s.Rebalances++
			})
			g.serve(ctx, gen, m)
			began = time.Now()
		case ctx.Err() != nil:
		case final(err):
			g.failed(err)
			return err
		case !expected:
			g.failed(err)
			if worthLogging && time.Since(loggedAt) >= logEvery {
				loggedAt = time.Now()
				g.logger.Warn("joining the group of consumers failed, trying again", "group", g.cfg.Name, "error", err.Error())
			}
			wait.Sleep(ctx)
		}
	}
	return nil
}

func count(partitions map[string][]int) (n int) {
	for _, p := range partitions {
		n += len(p)
	}
	return n
}

// final reports whether joining again is of no use before an operator has changed something.
func final(err error) bool {
	for _, code := range []kafka.Error{
		kafka.GroupAuthorizationFailed, kafka.TopicAuthorizationFailed, kafka.InconsistentGroupProtocol, kafka.InvalidGroupId,
		kafka.InvalidSessionTimeout, kafka.SASLAuthenticationFailed,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	_, few := errors.AsType[*fewPartitionsError](err)
	return few
}

// joinError classifies an error of joining. An expected one belongs to the protocol, and the next join follows at
// once. It also returns whether the error is worth a log line.
func joinError(err error) (expected, worthLogging bool) {
	switch {
	case errors.Is(err, kafka.MemberIDRequired), errors.Is(err, kafka.RebalanceInProgress),
		errors.Is(err, kafka.UnknownMemberId), errors.Is(err, kafka.IllegalGeneration):
		return true, false
	case errors.Is(err, kafka.GroupCoordinatorNotAvailable), errors.Is(err, kafka.NotCoordinatorForGroup), errors.Is(err, kafka.GroupLoadInProgress):
		return false, false // as a broker says that has just started
	}
	return false, true
}

// fewPartitionsError is returned when a topic has fewer partitions than the fleet has slices.
type fewPartitionsError struct {
	Topic      string
	Have, Want int
}

func (e *fewPartitionsError) Error() string {
	return fmt.Sprintf("kafka: topic %s has %d partitions, and the fleet needs %d: make them with hopscope kafka topics create", e.Topic, e.Have, e.Want)
}

// generation is one with what keeps it alive.
type generation struct {
	ingest.Generation
	lose      context.CancelCauseFunc
	ends      chan struct{} // closed when the group wants the partitions back, or they are lost
	stop      context.CancelFunc
	heartbeat sync.WaitGroup
}

// errLost is the cause of Generation.Lost.
var errLost = errors.New("the group has given the partitions to others")

// join joins the group and returns the next generation, whose heartbeats run.
func (g *Group) join(ctx context.Context) (*generation, error) {
	for topic, want := range g.cfg.Topics {
		have, err := g.log.Partitions(ctx, topic)
		if err != nil {
			return nil, err
		}
		if have < want {
			return nil, &fewPartitionsError{topic, have, want}
		}
	}
	topics := make([]string, 0, len(g.cfg.Topics))
	for t := range g.cfg.Topics {
		topics = append(topics, t)
	}
	slices.Sort(topics)
	// The answer comes when all members have come or their time is over.
	long, cancel := context.WithTimeout(ctx, g.cfg.Rebalance+g.cfg.Session+10*time.Second)
	defer cancel()
	joined, err := g.client.JoinGroup(long, &kafka.JoinGroupRequest{
		GroupID: g.cfg.Name, SessionTimeout: g.cfg.Session, RebalanceTimeout: g.cfg.Rebalance, MemberID: g.id, ProtocolType: groupProtocolType,
		Protocols: []kafka.GroupProtocol{{Name: groupProtocol, Metadata: kafka.GroupProtocolSubscription{Topics: topics, OwnedPartitions: g.owned}}},
	})
	if err == nil {
		err = joined.Error
		if errors.Is(err, kafka.MemberIDRequired) {
			g.id = joined.MemberID
		}
	}
	if errors.Is(err, kafka.UnknownMemberId) {
		g.id, g.owned = "", nil
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: join group %s: %w", g.cfg.Name, err)
	}
	g.id = joined.MemberID

	sync := &kafka.SyncGroupRequest{
		GroupID: g.cfg.Name, GenerationID: joined.GenerationID, MemberID: g.id, ProtocolType: groupProtocolType, ProtocolName: groupProtocol,
	}
	if joined.LeaderID == g.id {
		members := make([]member, 0, len(joined.Members))
		for _, m := range joined.Members {
			members = append(members, member{m.ID, m.Metadata.OwnedPartitions})
		}
		for id, parts := range assign(g.cfg.Topics, members) {
			sync.Assignments = append(sync.Assignments, kafka.SyncGroupRequestAssignment{
				MemberID: id, Assignment: kafka.GroupProtocolAssignment{AssignedPartitions: parts},
			})
		}
	}
	synced, err := g.client.SyncGroup(long, sync)
	if err == nil {
		err = synced.Error
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: join group %s: %w", g.cfg.Name, err)
	}
	gen := &generation{ends: make(chan struct{})}
	gen.ID, gen.Member, gen.Partitions = joined.GenerationID, g.id, map[string][]int{}
	for topic, parts := range synced.Assignment.AssignedPartitions {
		if _, ok := g.cfg.Topics[topic]; ok && len(parts) > 0 {
			gen.Partitions[topic] = slices.Sorted(slices.Values(parts))
		}
	}
	g.owned = gen.Partitions
	gen.Lost, gen.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	gen.Commit = func(ctx context.Context, topic string, partition int, offset int64) error {
		return g.commit(ctx, gen, topic, partition, offset)
	}
	beat, stop := context.WithCancel(context.WithoutCancel(ctx))
	gen.stop = stop
	gen.heartbeat.Go(func() { g.beat(beat, gen) })
	return gen, nil
}

// serve lets the member work until the generation ends or ctx does.
func (g *Group) serve(ctx context.Context, gen *generation, m ingest.Member) {
	g.logger.Info("member of the group of consumers", "group", g.cfg.Name, "generation", gen.ID, "partitions", count(gen.Partitions))
	m.Assigned(&gen.Generation)
	select {
	case <-ctx.Done():
	case <-gen.ends:
	}
	// A part of the time is for the brokers to hear of it.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Rebalance*3/4)
	stop := context.AfterFunc(gen.Lost, cancel)
	m.Revoke(limit, &gen.Generation)
	stop()
	cancel()
	gen.stop()
	gen.heartbeat.Wait()
	if gen.Lost.Err() != nil {
		g.owned = nil
	}
	gen.lose(context.Canceled)
	g.note(func(s *groupStats) { s.Generation, s.Partitions = 0, 0 })
}

// beat reports to the group that the member lives, also while it lets go of its partitions.
func (g *Group) beat(ctx context.Context, gen *generation) {
	every := g.cfg.Session / 6
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	ended := false
	end := func() {
		if !ended {
			ended = true
			close(gen.ends)
		}
	}
	lose := func(why error) {
		g.note(func(s *groupStats) { s.Lost++ })
		g.logger.Warn("the partitions were lost: this process was paused, or the brokers were out of reach, for longer than the session", "group", g.cfg.Name, "generation", gen.ID, "session", g.cfg.Session.String(), "error", why.Error())
		gen.lose(errors.Join(errLost, why))
		end()
	}
	heard := time.Now() // the last time that the group answered
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		once, cancel := context.WithTimeout(ctx, max(every, g.cfg.Session/2))
		sent := time.Now()
		err := sendHeartbeat(once, g.client, g.cfg.Name, gen.Member, gen.ID)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			heard = sent
		case errors.Is(err, kafka.RebalanceInProgress):
			heard = sent
			end()
		case fenced(err):
			lose(err)
			return
		default:
			g.failed(err)
			if time.Since(heard) > g.cfg.Session { // by then another member has them
				lose(err)
				return
			}
		}
	}
}

// commit sets an offset. The group compares generation and member, so that a member that was paused cannot undo later
// progress of others.
func (g *Group) commit(ctx context.Context, gen *generation, topic string, partition int, offset int64) error {
	final := func(err error) bool {
		if ctx.Err() != nil || fenced(err) || !passes(err) {
			return true
		}
		g.failed(err)
		return false
	}
	err := g.calls().Do(ctx, final, func(once context.Context) error {
		r, err := g.client.OffsetCommit(once, &kafka.OffsetCommitRequest{
			GroupID: g.cfg.Name, GenerationID: gen.ID, MemberID: gen.Member,
			Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: partition, Offset: offset}}},
		})
		if err != nil {
			return err
		}
		p, err := only(r.Topics[topic])
		return cmp.Or(err, p.Error)
	})
	switch {
	case err == nil:
		return nil
	case fenced(err):
		g.note(func(s *groupStats) { s.Refused++ })
		err = errors.Join(errLost, err)
	}
	return &partitionError{"commit", topic, partition, err}
}

// calls is how calls to the group are repeated.
func (g *Group) calls() retry.Backoff {
	return retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second, Attempt: g.cfg.Session}
}

// fenced reports whether the group does not take the sender for the present owner of its partitions.
func fenced(err error) bool {
	return errors.Is(err, kafka.UnknownMemberId) || errors.Is(err, kafka.IllegalGeneration) || errors.Is(err, kafka.FencedInstanceID)
}

// only returns the one partition that an answer is about.
func only[T any](parts []T) (p T, err error) {
	if len(parts) != 1 {
		return p, errors.New("the answer has no such partition")
	}
	return parts[0], nil
}

// lost reports whether an error means that the partition belongs to another member by now.
func lost(err error) bool { return errors.Is(err, errLost) }

// committed returns the group's offset of a partition, or -1 if there is none.
func (g *Group) committed(ctx context.Context, topic string, partition int) (offset int64, err error) {
	err = g.calls().Do(ctx, func(err error) bool { return !passes(err) }, func(once context.Context) error {
		r, err := g.client.OffsetFetch(once, &kafka.OffsetFetchRequest{GroupID: g.cfg.Name, Topics: map[string][]int{topic: {partition}}})
		if err == nil {
			err = r.Error
		}
		if err != nil {
			return err
		}
		p, err := only(r.Topics[topic])
		offset = p.CommittedOffset
		return cmp.Or(err, p.Error)
	})
	if err != nil {
		return 0, &partitionError{"committed offset of", topic, partition, err}
	}
	return offset, nil
}
