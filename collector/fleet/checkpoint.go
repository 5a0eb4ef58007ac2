package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/ingest"
)

// checkpoint is the state of a worker after it has read the input up to an offset.
type checkpoint struct {
	generation int64
	offset     int64 // from which the input is to be read to go on
	label      int64 // of the last window that was published
	state      []byte
	aside      []byte // what is kept beside it, which may be of an earlier checkpoint; nil for none
	delivered  uint64 // reports that were handed to the stores before
}

// checkpoints keeps the checkpoints of one partition. Two of them are written in turns, so that one is whole at any
// time.
//
// A checkpoint is cut into chunks, under the keys a/0, a/1, and so on, or b/0, b/1. The topic is compacted, so it
// keeps the last record of each key. The head of a chunk holds what chunks of one checkpoint have in common: name,
// boot and number of the checkpoint, generation, offset and label. The value is compressed.
//
// A third name, aside, holds what programs of other versions cannot read. While they have the partition they overwrite
// a and b, and leave aside alone, because their own name for it differs. It is there when a program that reads it has
// the partition again.
type checkpoints struct {
	log       ingest.Log
	topic     string
	partition int
	name      string
	boot      uint64
	codec     *fleet.Codec
	aside     string // name of what is kept beside checkpoints, longer than one letter; empty for nothing
	seq       uint64 // of the last one that was written
	side      int    // where the next one goes
}

const (
	chunkBytes      = 512 << 10
	maxChunks       = 1 << 8    // of either side: what a hostile writer can make a consumer hold is bounded by this, too
	checkpointBytes = 256 << 20 // when it is not compressed
	sides           = "ab"
	asideSide       = len(sides)
	// checkpointVersion is the first byte of the value before compression.
	checkpointVersion = 1
)

// errCheckpoint is returned when this program cannot use a checkpoint.
var errCheckpoint = errors.New("was written by another version, or is damaged")

// checkpointKey is what chunks of one checkpoint have in common.
type checkpointKey struct {
	from                      string
	boot, seq                 uint64
	generation, offset, label int64
	parts                     uint32
}

type chunk struct {
	head  fleet.Head
	side  int
	at    int64 // offset
	value []byte
}

// read finds the newest whole checkpoint of the highest generation, or nil if there is none. It calls report with the error
// of what cannot be read.
func (c *checkpoints) read(ctx context.Context, report func(error)) (*checkpoint, error) {
	first, next, err := c.log.Bounds(ctx, c.topic, c.partition)
	if err != nil {
		return nil, err
	}
	chunks := map[string]chunk{}
	r := c.log.Reader(c.topic, c.partition, first)
	err = ingest.ReadTo(ctx, r, next, report, func(m *ingest.Message) {
		side, n, ok := c.parseChunkKey(string(m.Key))
		if !ok {
			return
		}
		h, err := fleet.ReadHead(m.Head)
		if err == nil && (h.Kind != fleet.Chunk || h.Part != n || h.Parts == 0 || h.Parts > maxChunks || len(m.Value) > chunkBytes || h.Sum != fleet.Sum(m.Value)) {
			err = errCheckpoint
		}
		if err != nil {
			report(fmt.Errorf("checkpoint record at offset %d of %s/%d: %w", m.Offset, c.topic, c.partition, err))
			delete(chunks, string(m.Key))
			return
		}
		chunks[string(m.Key)] = chunk{h, side, m.Offset, m.Value}
	})
	if err != nil {
		return nil, err
	}
	p := c.newest(chunks, false, report)
	if p != nil {
		if aside := c.newest(chunks, true, report); aside != nil {
			p.aside = aside.state
		}
	}
	return p, nil
}

// newest joins chunks, of checkpoints or of the state kept beside them.
func (c *checkpoints) newest(chunks map[string]chunk, aside bool, report func(error)) *checkpoint {
	groups := map[checkpointKey][]chunk{}
	for _, k := range chunks {
		if (k.side == asideSide) != aside {
			continue
		}
		h := &k.head
		key := checkpointKey{h.From, h.Boot, h.Seq, h.Generation, h.Offset, h.End, h.Parts}
		groups[key] = append(groups[key], k)
	}
	type whole struct {
		key    checkpointKey
		chunks []chunk
		at     int64
	}
	var all []whole
	for key, group := range groups {
		if len(group) != int(key.parts) {
			continue // it was being written, or overwritten
		}
		w := whole{key: key, chunks: group}
		for _, k := range group {
			w.at = max(w.at, k.at)
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b whole) int {
		return cmp.Or(cmp.Compare(b.key.generation, a.key.generation), cmp.Compare(b.at, a.at))
	})
	for _, w := range all {
		slices.SortFunc(w.chunks, func(a, b chunk) int { return cmp.Compare(a.head.Part, b.head.Part) })
		var frame bytes.Buffer
		for _, k := range w.chunks {
			frame.Write(k.value)
		}
		state, err := c.codec.Decompress(nil, frame.Bytes())
		if err == nil && (len(state) == 0 || state[0] != checkpointVersion) {
			err = errCheckpoint
		}
		if err != nil {
			report(fmt.Errorf("checkpoint of generation %d, at offset %d of %s/%d: %w", w.key.generation, w.at, c.topic, c.partition, err))
			continue
		}
		if !aside {
			c.side = 1 - w.chunks[0].side // the other one may go
		}
		return &checkpoint{generation: w.key.generation, offset: w.key.offset, label: w.key.label, state: state[1:]}
	}
	return nil
}

func (c *checkpoints) chunkKey(side int, n uint32) string {
	name := c.aside
	if side < asideSide {
		name = sides[side : side+1]
	}
	return name + "/" + strconv.FormatUint(uint64(n), 10)
}

func (c *checkpoints) parseChunkKey(key string) (side int, n uint32, ok bool) {
	name, number, _ := strings.Cut(key, "/")
	v, err := strconv.ParseUint(number, 10, 32)
	if side = asideSide; len(name) == 1 {
		side = strings.Index(sides, name)
	}
	return side, uint32(v), err == nil && name != "" && side >= 0 && v < maxChunks && c.chunkKey(side, uint32(v)) == key
}

// write replaces the older of the two checkpoints, after it has written the state kept beside them.
func (c *checkpoints) write(ctx context.Context, p *checkpoint) error {
	if p.aside != nil {
		if err := c.put(ctx, p, asideSide, p.aside); err != nil {
			return err
		}
	}
	if err := c.put(ctx, p, c.side, p.state); err != nil {
		return err
	}
	c.side = 1 - c.side
	return nil
}

// put writes the chunks of a state.
func (c *checkpoints) put(ctx context.Context, p *checkpoint, side int, state []byte) error {
	frame := c.codec.Compress(nil, append([]byte{checkpointVersion}, state...))
	parts := max(1, (len(frame)+chunkBytes-1)/chunkBytes)
	if parts > maxChunks {
		return fmt.Errorf("checkpoint of %d bytes: longer than %d chunks of %d bytes", len(frame), maxChunks, chunkBytes)
	}
	c.seq++
	messages := make([]ingest.Message, parts)
	for i := range messages {
		value := frame[i*chunkBytes : min(len(frame), (i+1)*chunkBytes)]
		h := fleet.Head{
			Kind: fleet.Chunk, From: c.name, Boot: c.boot, Seq: c.seq, Slice: uint32(c.partition), End: p.label,
			Part: uint32(i), Parts: uint32(parts), Generation: p.generation, Offset: p.offset, Sum: fleet.Sum(value),
		}
		messages[i] = ingest.Message{Key: []byte(c.chunkKey(side, uint32(i))), Value: value, Head: h.Append(nil)}
	}
	_, err := c.log.Append(ctx, c.topic, c.partition, messages...)
	return err
}
