package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// acl is a line of the table in docs/fleet-security.md.
type acl struct{ role, operation, resource, name string }

var aclLine = regexp.MustCompile("(?m)^\\| (collector|consumer|console|control|topics create|topics check) \\| ([A-Za-z, ]+) \\| (topic|group|cluster) \\| `([a-z.*]+)` \\|")

// documented reads the ACLs of a role from the documentation, with another prefix.
func documented(t *testing.T, role, prefix string) (list []acl) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "fleet-security.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range aclLine.FindAllStringSubmatch(string(text), -1) {
		if m[1] != role {
			continue
		}
		for _, op := range strings.Split(m[2], ", ") {
			list = append(list, acl{role, op, m[3], strings.Replace(m[4], "hopscope.", prefix, 1)})
		}
	}
	if len(list) == 0 {
		t.Fatalf("no ACL of a %s is documented", role)
	}
	return list
}

// does is the work of a role with Kafka, from the first request to the last.
type does func(ctx context.Context, t *testing.T, c Config) error

// asCollector joins, publishes a window with reports, and leaves.
func asCollector(_ context.Context, t *testing.T, c Config) error {
	w := open(t, c)
	defer w.Close()
	if err := w.Join(t.Context(), identity(&c, "east")); err != nil {
		return err
	}
	if p := w.Stats().Problem; p != "" {
		return errors.New(p)
	}
	label := labelNow()
	if err := deliver(w, encode(t, w, label, 10)); err != nil {
		return err
	}
	p := newPayload(label, false)
	p.add(toReports, 0, []byte("head"), []byte("value"))
	return deliver(w, []sink.Encoded{{Payload: p.b}})
}

// fetch reads the beginning of partition 0 of a topic.
func fetch(ctx context.Context, c *brokers.Client, name string) error {
	topic := c.Topic(name)
	offsets, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.FirstOffsetOf(0)}}})
	if err == nil {
		err = offsets.Topics[topic][0].Error
	}
	if err == nil {
		var resp *kafka.FetchResponse
		if resp, err = c.Fetch(ctx, &kafka.FetchRequest{Topic: topic, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 10 * time.Millisecond}); err == nil {
			err = resp.Error
		}
	}
	return c.Explain(err, brokers.ToRead(topic))
}

func produce(ctx context.Context, c *brokers.Client, name string) error {
	topic := c.Topic(name)
	resp, err := c.Produce(ctx, &kafka.ProduceRequest{Topic: topic, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Key: kafka.NewBytes([]byte("k")), Value: kafka.NewBytes([]byte("v"))})})
	if err == nil {
		err = resp.Error
	}
	return c.Explain(err, brokers.ToWrite(topic))
}

// asConsumer joins the group, reads and writes what a consumer does, and commits.
func asConsumer(ctx context.Context, t *testing.T, c Config) error {
	client, err := c.Dial("consumer")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{brokers.Windows, brokers.Reports, brokers.Series, brokers.State, brokers.Roster} {
		if err := fetch(ctx, client, name); err != nil {
			return err
		}
		if err := produce(ctx, client, name); err != nil {
			return err
		}
	}
	return asMember(ctx, client, c.Group(), c.Topic(brokers.Windows))
}

// asControl reads findings and plans, writes plans, and stands for being in charge.
func asControl(ctx context.Context, t *testing.T, c Config) error {
	client, err := c.Dial("control")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := errors.Join(fetch(ctx, client, brokers.Series), fetch(ctx, client, brokers.Plans), produce(ctx, client, brokers.Plans)); err != nil {
		return err
	}
	return asMember(ctx, client, c.Topic("control"), c.Topic(brokers.Plans))
}

// asMember joins a group, commits an offset of a topic, and leaves.
func asMember(ctx context.Context, client *brokers.Client, group, topic string) error {
	join := func(member string) (*kafka.JoinGroupResponse, error) {
		r, err := client.JoinGroup(ctx, &kafka.JoinGroupRequest{
			GroupID: group, SessionTimeout: 6 * time.Second, RebalanceTimeout: 6 * time.Second, MemberID: member, ProtocolType: "consumer",
			Protocols: []kafka.GroupProtocol{{Name: "range", Metadata: kafka.GroupProtocolSubscription{Topics: []string{topic}}}},
		})
		if err == nil {
			err = r.Error
		}
		return r, err
	}
	r, err := join("")
	for errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupLoadInProgress) { // on a fresh broker
		if !retry.Sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
		r, err = join("")
	}
	if errors.Is(err, kafka.MemberIDRequired) {
		r, err = join(r.MemberID)
	}
	if err != nil {
		return client.Explain(err, brokers.ToJoin(group))
	}
	s, err := client.SyncGroup(ctx, &kafka.SyncGroupRequest{GroupID: group, GenerationID: r.GenerationID, MemberID: r.MemberID, ProtocolType: "consumer", ProtocolName: "range",
		Assignments: []kafka.SyncGroupRequestAssignment{{MemberID: r.MemberID, Assignment: kafka.GroupProtocolAssignment{AssignedPartitions: map[string][]int{topic: {0}}}}}})
	if err == nil {
		err = s.Error
	}
	if err != nil {
		return client.Explain(err, brokers.ToJoin(group))
	}
	o, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: r.GenerationID, MemberID: r.MemberID,
		Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: 0}}}})
	if err == nil {
		err = o.Topics[topic][0].Error
	}
	if errors.Is(err, kafka.TopicAuthorizationFailed) {
		err = client.Explain(err, brokers.ToRead(topic))
	}
	l, lerr := client.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: r.MemberID}}})
	if err == nil && lerr == nil {
		lerr = l.Error
	}
	return client.Explain(errors.Join(err, lerr), brokers.ToJoin(group))
}

// asConsole reads what the page shows.
func asConsole(ctx context.Context, t *testing.T, c Config) error {
	client, err := c.Dial("console")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return errors.Join(fetch(ctx, client, brokers.Series), fetch(ctx, client, brokers.Roster))
}

func asCheck(ctx context.Context, t *testing.T, c Config) error {
	list, err := admin(t, c).Check(ctx)
	for _, d := range list {
		if err == nil && d.Problem {
			err = fmt.Errorf("%+v", d)
		}
	}
	return err
}

func asCreate(ctx context.Context, t *testing.T, c Config) error {
	made, err := admin(t, c).Create(ctx, true)
	if err == nil && (len(made) != 7 || !made[0].Created) {
		err = fmt.Errorf("%v", made)
	}
	return err
}

// TestACLs lets each role do its work with exactly what is documented, and then with each ACL missing once.
func TestACLs(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	users := []string{"collector", "consumer", "console", "control", "check", "create"}
	b := servertest.StartBroker(t, servertest.BrokerOptions{TLS: true, Users: users, ACLs: true})
	prefix := b.Prefix
	of := func(user, prefix string) Config {
		c := of(b)
		c.Prefix, c.Timeout = prefix, 5*time.Second
		c.TLS, c.CAFile, c.SASL, c.User = true, b.Authority.File, "scram-sha-256", user
		c.PasswordFile = filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(c.PasswordFile, []byte(servertest.Password(user)), 0o600); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	// The maker of the topics can do so once, for a prefix of its own.
	for _, a := range documented(t, "topics create", "made.") {
		b.Allow("create", a.operation, a.resource, a.name)
	}
	if err := asCreate(ctx, t, of("create", "made.")); err != nil {
		t.Fatalf("topics create: %v", err)
	}
	if err := asCreate(ctx, t, of("create", "other.")); err == nil || !strings.Contains(err.Error(), "operation Create on topic other.") {
		t.Errorf("topics create for another prefix: %v", err)
	}

	create(t, b, of("collector", prefix))
	for _, r := range []struct {
		role, user string
		does       does
	}{
		{"collector", "collector", asCollector},
		{"consumer", "consumer", asConsumer},
		{"console", "console", asConsole},
		{"control", "control", asControl},
		{"topics check", "check", asCheck},
	} {
		list := documented(t, r.role, prefix)
		for _, a := range list {
			b.Allow(r.user, a.operation, a.resource, a.name)
		}
		c := of(r.user, prefix)
		if err := r.does(ctx, t, c); err != nil {
			t.Fatalf("%s, with all that is documented: %v", r.role, err)
		}
		for _, a := range list {
			b.Forbid(r.user, a.operation, a.resource, a.name)
			// An ACL that another one implies would not have to be documented.
			err := r.does(ctx, t, c)
			want := fmt.Sprintf("allow User:%s the operation %s on %s ", r.user, a.operation, a.resource)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.TrimSuffix(a.name, "*")) {
				t.Errorf("%s without %s on %s %s: %v", r.role, a.operation, a.resource, a.name, err)
			}
			b.Allow(r.user, a.operation, a.resource, a.name)
		}
		if err := r.does(ctx, t, c); err != nil {
			t.Errorf("%s, with all of it again: %v", r.role, err)
		}
		for _, a := range slices.Backward(list) {
			b.Forbid(r.user, a.operation, a.resource, a.name)
		}
	}
}
