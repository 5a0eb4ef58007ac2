package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

func TestTable(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	client := dial(t, of(b))
	topic := client.Topic(Roster)
	bound := TableBounds{Keys: 3, Value: 100, Bytes: 1000}
	ctx := t.Context()
	_, err := client.NewTable(topic, bound).Refresh(ctx)
	wants(t, err, NoTopic, "read topic "+topic, "hopscope kafka topics create")

	b.CreateTopic(topic, 1, "cleanup.policy=compact", "message.timestamp.type=LogAppendTime")
	client = dial(t, of(b))
	mine, other := client.NewTable(topic, bound), client.NewTable(topic, bound)
	step := func(want string) {
		t.Helper()
		changed, err := other.Refresh(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := other.All()
		var list []string
		for _, k := range slices.Sorted(maps.Keys(all)) {
			list = append(list, k+"="+string(all[k]))
		}
		if got := fmt.Sprintf("%v %v", changed, list); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	put := func(key, value string) {
		t.Helper()
		var v []byte
		if value != "" {
			v = []byte(value)
		}
		before := time.Now()
		at, err := mine.Put(ctx, key, v)
		if err != nil {
			t.Fatal(err)
		}
		if at.Before(before.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("appended at %v, want about %v", at, before)
		}
	}
	step("[] []")
	put("a", "1")
	put("b", "2")
	put("a", "3")
	step("[a b] [a=3 b=2]")
	step("[] [a=3 b=2]")
	put("b", "")
	put("c", "4")
	put("nobody", "")
	step("[b c] [a=3 c=4]")
	put("d", strings.Repeat("x", 101)) // too long
	put("e", "5")
	put("f", "6") // too many
	step("[e] [a=3 c=4 e=5]")
	if n := other.leftOut(); n != 2 {
		t.Errorf("%d left out, want 2", n)
	}
	first := client.NewTable(topic, bound)
	if _, err := first.Refresh(ctx); err != nil || !maps.EqualFunc(first.All(), other.All(), slices.Equal) {
		t.Errorf("%v: who reads all at once has %v", err, first.All())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := other.Refresh(ended); err == nil {
		t.Error("nothing is wrong without time")
	}
	if v, ok := other.Get("a"); !ok || string(v) != "3" {
		t.Errorf("a is %q", v)
	}
}
