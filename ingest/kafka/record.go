package kafka

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/ingest"
)

// recordVersion is that of the records which this program writes. Records of other versions are passed over, but for what
// all versions have: the number of their term and their epoch.
const recordVersion = 1

// MaxPlan is the greatest size of a plan in a record, in bytes. With the rest of the record it is below the limit of
// any topic.
const MaxPlan = 512 << 10

// planRecord is a value of the log.
type planRecord struct {
	Version    int             `json:"version"`
	Term       uint64          `json:"term"`
	Generation int             `json:"generation"`
	From       string          `json:"from"`
	Writer     string          `json:"writer"` // drawn anew for each term
	Epoch      uint32          `json:"epoch"`
	Plan       json.RawMessage `json:"plan,omitempty"`
}

// key returns the key of all records of a writer, so that compaction keeps its last one. A deposed member thus
// replaces only its own records.
func (r *planRecord) key() string { return "plan/" + r.Writer }

// compare returns which of two records is the later one by term and generation. Of equal records, the later one in the
// log counts.
func (r *planRecord) compare(b *planRecord) int {
	return cmp.Or(cmp.Compare(r.Term, b.Term), cmp.Compare(r.Generation, b.Generation))
}

func (r *planRecord) message() (ingest.Message, error) {
	value, err := json.Marshal(r)
	return ingest.Message{Key: []byte(r.key()), Value: value}, err
}

var errRecord = errors.New("it is no record of a plan")

// readRecord reads a message; without an error it may still be nil, for a key that was taken away.
func readRecord(m *ingest.Message) (*planRecord, error) {
	if m.Value == nil {
		return nil, nil
	}
	if len(m.Value) > 2*MaxPlan {
		return nil, fmt.Errorf("%w: it has %d bytes", errRecord, len(m.Value))
	}
	var r planRecord
	if err := json.Unmarshal(m.Value, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if r.Version < 1 || r.Term == 0 || r.Term > maxTerm || r.Epoch > maxEpoch || r.Writer == "" || r.key() != string(m.Key) {
		return nil, fmt.Errorf("%w: its numbers are out of range, or its key is that of another one", errRecord)
	}
	if r.Version != recordVersion {
		r.Plan = nil
	}
	return &r, nil
}

// Records beyond these are refused: behind them there would be no room for successors.
const (
	maxTerm  = 1 << 62
	maxEpoch = 1<<32 - 1<<16
)

// history is the state of the log up to an offset.
type history struct {
	term  uint64 // the highest
	epoch uint32 // the highest
	last  *planRecord
	keys  map[string]bool // that have a value
}

// maxKeys bounds what a hostile writer can make a member hold.
const maxKeys = 1 << 16

func (h *history) add(key string, r *planRecord) {
	if r == nil {
		delete(h.keys, key)
		return
	}
	if h.keys == nil {
		h.keys = map[string]bool{}
	}
	if len(h.keys) < maxKeys {
		h.keys[key] = true
	}
	h.term, h.epoch = max(h.term, r.Term), max(h.epoch, r.Epoch)
	if h.last == nil || r.compare(h.last) >= 0 {
		h.last = r
	}
}
