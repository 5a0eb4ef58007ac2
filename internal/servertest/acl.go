package servertest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/hopscope/hopscope/internal/testkit"
)

// Allow adds an ACL: a user may do the operation ("Write", "Describe") on a resource ("topic", "group", "cluster") of
// this name. A name that ends in "*" stands for all names that begin with the rest.
func (b *Broker) Allow(user, operation, resource, name string) {
	b.t.Helper()
	e := b.entry(user, operation, resource, name)
	client, done := b.client()
	defer done()
	err := settled(func() error {
		resp, err := client.CreateACLs(context.Background(), &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{e}})
		if err == nil {
			err = errors.Join(resp.Errors...)
		}
		return err
	})
	if err != nil {
		b.t.Fatalf("servertest: allowing %s: %v", user, err)
	}
	b.eventually("the broker knows what "+user+" may do", func() bool { return b.knows(client, &e) == 1 })
}

// Forbid takes such an ACL away.
func (b *Broker) Forbid(user, operation, resource, name string) {
	b.t.Helper()
	e := b.entry(user, operation, resource, name)
	client, done := b.client()
	defer done()
	err := settled(func() error {
		resp, err := client.DeleteACLs(context.Background(), &kafka.DeleteACLsRequest{Filters: []kafka.DeleteACLsFilter{{
			ResourceTypeFilter: e.ResourceType, ResourceNameFilter: e.ResourceName, ResourcePatternTypeFilter: e.ResourcePatternType,
			PrincipalFilter: e.Principal, HostFilter: e.Host, Operation: e.Operation, PermissionType: e.PermissionType,
		}}})
		switch {
		case err != nil:
			return err
		case len(resp.Results) != 1:
			return errors.New("no answer")
		case resp.Results[0].Error != nil:
			return resp.Results[0].Error
		case len(resp.Results[0].MatchingACLs) != 1:
			return errors.New("there is no such ACL")
		}
		return nil
	})
	if err != nil {
		b.t.Fatalf("servertest: forbidding %s: %v", user, err)
	}
	b.eventually("the broker knows what "+user+" may not do", func() bool { return b.knows(client, &e) == 0 })
}

// knows counts the ACLs by which the broker decides, which follow those of the controller. It returns -1 if the broker
// does not answer.
func (b *Broker) knows(client *kafka.Client, e *kafka.ACLEntry) int {
	resp, err := client.DescribeACLs(context.Background(), &kafka.DescribeACLsRequest{Filter: kafka.ACLFilter{
		ResourceTypeFilter: e.ResourceType, ResourceNameFilter: e.ResourceName, ResourcePatternTypeFilter: e.ResourcePatternType,
		PrincipalFilter: e.Principal, HostFilter: e.Host, Operation: e.Operation, PermissionType: e.PermissionType,
	}})
	if err != nil || resp.Error != nil {
		return -1
	}
	return len(resp.Resources)
}

// settled repeats a call while the broker has not found its controller, its topics or their leaders, as in its first
// moments.
func settled(f func() error) error {
	for deadline := time.Now().Add(testkit.Patience); ; {
		err := f()
		fresh := false
		for _, e := range []error{kafka.BrokerNotAvailable, protocol.ErrNoTopic, protocol.ErrNoPartition, protocol.ErrNoLeader, kafka.NotLeaderForPartition, kafka.LeaderNotAvailable} {
			fresh = fresh || errors.Is(err, e)
		}
		if !fresh || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (b *Broker) entry(user, operation, resource, name string) kafka.ACLEntry {
	b.t.Helper()
	e := kafka.ACLEntry{Principal: "User:" + user, Host: "*", PermissionType: kafka.ACLPermissionTypeAllow,
		ResourceName: name, ResourcePatternType: kafka.PatternTypeLiteral}
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		e.ResourceName, e.ResourcePatternType = prefix, kafka.PatternTypePrefixed
	}
	err := errors.Join(e.ResourceType.UnmarshalText([]byte(resource)), e.Operation.UnmarshalText([]byte(operation)))
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}
