package ingest

import (
	"context"
	"time"
)

// Message is one record of a partitioned log, such as a topic of Kafka. It belongs to its receiver.
type Message struct {
	Offset int64
	Time   int64 // ns since 1970, as its producer said, or when it was appended where the topic is kept by that
	Key    []byte
	Value  []byte
	Head   []byte // its header, of the one name that the reader of the log was given
}

// Generation is the assignment of a member of a consumer group, from one rebalance to the next.
type Generation struct {
	ID         int
	Member     string
	Partitions map[string][]int // by topic, in ascending order

	// Lost ends when the member has lost the partitions without a request to release them. Work in progress is then
	// abandoned: the group would refuse its commit.
	Lost context.Context
	// Commit sets the group's offsets: what the next owner of the partition reads first. The group refuses it once another generation
	// has begun.
	Commit func(ctx context.Context, topic string, partition int, offset int64) error
}

// Member receives what a group assigns to it and takes from it. Its methods are called from one goroutine, first Assigned, then
// Revoke, and so on.
type Member interface {
	// Assigned begins to work on the partitions, and returns at once.
	Assigned(g *Generation)
	// Revoke ends the use of a generation's partitions. It stops reading, finishes and commits what it can until ctx
	// ends, and releases all partitions. The membership is kept meanwhile. It is also called for a generation that
	// was lost, with an ended Lost.
	Revoke(ctx context.Context, g *Generation)
}

// Log is a partitioned log. It is safe for use by several goroutines.
type Log interface {
	// Reader reads a partition from an offset on.
	Reader(topic string, partition int, offset int64) LogReader
	// Append writes messages, in order, and returns the offset of the first once all that count have them. It tries again
	// until ctx ends what may pass, so that messages can be there twice.
	Append(ctx context.Context, topic string, partition int, messages ...Message) (first int64, err error)
	// Bounds returns the first offset of a partition and the one that its next record will have.
	Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record of a time, ns since 1970, or later ones.
	OffsetAt(ctx context.Context, topic string, partition int, at int64) (int64, error)
	// Retention returns how long a topic keeps its records by time; 0 is for ever.
	Retention(ctx context.Context, topic string) (time.Duration, error)
}

// LogReader reads one partition. It has one user at a time.
type LogReader interface {
	// Next returns the next messages, in the order of their offsets, which need not be consecutive. It waits a moment
	// for them, and returns none if none came. After an error it can be called again, and continues.
	Next(ctx context.Context) ([]Message, error)
	Offset() int64 // of the next message
	// Limit bounds the bytes that one call of Next asks for, for readers of few messages. A batch comes whole.
	Limit(bytes int)
	// High is the offset that the next record of the partition will have, as the last answer said; -1 before the first.
	High() int64
}

// Group is a group of consumers.
type Group interface {
	// Run is a member of the group until ctx ends, then lets go of the partitions and leaves. It returns an error only for
	// what does not pass by itself.
	Run(ctx context.Context, m Member) error
}
