package kafkatest

import (
	"context"
	"errors"
	"strings"

	"github.com/segmentio/kafka-go"
)

// Allow adds an ACL: a user may do the operation ("Write", "Describe") on a resource ("topic", "group", "cluster") of this
// name, or on all whose names begin with it where the name ends in "*".
func (b *Broker) Allow(user, operation, resource, name string) {
	b.t.Helper()
	e := b.entry(user, operation, resource, name)
	client, done := b.client()
	defer done()
	resp, err := client.CreateACLs(context.Background(), &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{e}})
	if err == nil {
		err = errors.Join(resp.Errors...)
	}
	if err != nil {
		b.t.Fatalf("kafkatest: allowing %s: %v", user, err)
	}
}

// Forbid takes such an ACL away.
func (b *Broker) Forbid(user, operation, resource, name string) {
	b.t.Helper()
	e := b.entry(user, operation, resource, name)
	client, done := b.client()
	defer done()
	resp, err := client.DeleteACLs(context.Background(), &kafka.DeleteACLsRequest{Filters: []kafka.DeleteACLsFilter{{
		ResourceTypeFilter: e.ResourceType, ResourceNameFilter: e.ResourceName, ResourcePatternTypeFilter: e.ResourcePatternType,
		PrincipalFilter: e.Principal, HostFilter: e.Host, Operation: e.Operation, PermissionType: e.PermissionType,
	}}})
	switch {
	case err != nil:
	case len(resp.Results) != 1:
		err = errors.New("no answer")
	case resp.Results[0].Error != nil:
		err = resp.Results[0].Error
	case len(resp.Results[0].MatchingACLs) != 1:
		err = errors.New("there is no such ACL")
	}
	if err != nil {
		b.t.Fatalf("kafkatest: forbidding %s: %v", user, err)
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
