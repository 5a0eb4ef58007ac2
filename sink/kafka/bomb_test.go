package kafka

import (
	"errors"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	protoproduce "github.com/segmentio/kafka-go/protocol/produce"

	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A batch that is short only because its producer compressed it is refused by the brokers: its readers would unpack all of it.
func TestCompressedBatch(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	create(t, b, c)
	for _, topic := range []string{brokers.Windows, brokers.Reports, brokers.Series, brokers.State, brokers.Roster} {
		for _, n := range []int{1000, 8 << 20} {
			var err error
			testkit.Until(t, "all know the topic "+topic, func() bool {
				err = produceCompressed(t, b, c.Topic(topic), make([]byte, n))
				return !unsettled(err)
			})
			if n == 1000 && err != nil {
				t.Errorf("%s: a short batch: %v", topic, err)
			}
			if n > 1000 && !errors.Is(err, kafka.MessageSizeTooLarge) {
				t.Errorf("%s: a batch of %d bytes when it is unpacked: %v", topic, n, err)
			}
		}
	}
}

// unsettled reports whether a topic was made so lately that not all brokers know.
func unsettled(err error) bool {
	return errors.Is(err, kafka.NotLeaderForPartition) || errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.LeaderNotAvailable) ||
		errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

func produceCompressed(t *testing.T, b *servertest.Broker, topic string, value []byte) error {
	t.Helper()
	r, err := b.Client().Transport.RoundTrip(t.Context(), b.Client().Addr, &protoproduce.Request{
		Acks: -1, Timeout: 10_000, Topics: []protoproduce.RequestTopic{{Topic: topic, Partitions: []protoproduce.RequestPartition{{RecordSet: protocol.RecordSet{
			Version: 2, Attributes: protocol.Attributes(kafka.Gzip),
			Records: protocol.NewRecordReader(protocol.Record{Key: protocol.NewBytes([]byte("k")), Value: protocol.NewBytes(value)}),
		}}}}},
	})
	if err != nil {
		return err
	}
	if code := r.(*protoproduce.Response).Topics[0].Partitions[0].ErrorCode; code != 0 {
		return kafka.Error(code)
	}
	return nil
}
