package servertest

import (
	"fmt"
	"os"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestMain(m *testing.M) { Main(m) }

func put(b *Broker, topic, value string) {
	b.t.Helper()
	b.Write(topic, 0, Message{Key: []byte("k"), Value: []byte(value), Headers: []kafka.Header{{Key: "h", Value: []byte("of " + value)}}})
}

func TestShared(t *testing.T) {
	a, b := SharedBroker(t), SharedBroker(t)
	if a.Addr != b.Addr || a.Prefix == b.Prefix {
		t.Fatalf("%s and %s, with %q and %q: want one broker and two prefixes", a.Addr, b.Addr, a.Prefix, b.Prefix)
	}
	topic := a.Prefix + "words"
	a.CreateTopic(topic, 2)
	put(a, topic, "one")
	put(a, topic, "two")
	got := ""
	for _, m := range b.Read(topic, 0, 0) {
		got += fmt.Sprintf("%d %s=%s (%s); ", m.Offset, m.Key, m.Value, m.Header("h"))
	}
	if want := "0 k=one (of one); 1 k=two (of two); "; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
	if first, end := b.Offsets(topic, 1); first != 0 || end != 0 {
		t.Errorf("the empty partition goes from %d to %d", first, end)
	}
}

// A broker that was stopped or killed comes back at the same address, with what it had.
func TestRestart(t *testing.T) {
	testkit.Long(t)
	b := StartBroker(t, BrokerOptions{})
	dir := b.dir
	topic := b.Prefix + "words"
	b.CreateTopic(topic, 1)
	put(b, topic, "one")
	b.Kill()
	if b.serves() {
		t.Fatal("it serves after it was killed")
	}
	b.Start()
	put(b, topic, "two")
	b.Restart()
	put(b, topic, "three")
	b.Pause()
	if b.serves() {
		t.Error("it serves while it stands still")
	}
	b.Continue()
	if n := len(b.Read(topic, 0, 0)); n != 3 {
		t.Errorf("it has %d records, want 3", n)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
