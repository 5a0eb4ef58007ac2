package ingest

import "context"

// Message is one record of a partitioned log, such as a topic of Kafka. It belongs to who receives it.
type Message struct {
	Offset int64
	Time   int64 // ns since 1970, as its producer said
	Key    []byte
	Value  []byte
	Head   []byte // its header, of the one name that the reader of the log was told
}

// Generation is what a member of a consumer group has, from one rebalance to the next.
type Generation struct {
	ID         int
	Member     string
	Partitions map[string][]int // by topic, in ascending order

	// Lost ends when the partitions are not ours any more although nobody asked for them: what is then under way is
	// abandoned, and committing it would be refused.
	Lost context.Context
	// Commit sets the group's offsets: what is to be read first by who has the partition next. The group refuses it once
	// another generation has begun.
	Commit func(ctx context.Context, topic string, partition int, offset int64) error
}

// Member is told what a group gives to it and takes from it. Its methods are called from one goroutine, first Assigned,
// then Revoke, and so on.
type Member interface {
	// Assigned begins to work on the partitions, and returns at once.
	Assigned(g *Generation)
	// Revoke ends that: it stops to read, finishes and commits what it can until ctx ends, and gives all partitions back.
	// The membership is kept meanwhile. It is also called for a generation that was lost, with an ended Lost.
	Revoke(ctx context.Context, g *Generation)
}
