package windows

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// The state file holds the sequence numbers that the exporters had reached and what became of their reports. After a
// kill, the next run reports the loss from it. The file is replaced at every window's end, before the window goes to
// the spools. After is the state if the window reaches them, and Before the state if it does not. Filled is the end of
// the first spool before that, by which the next run decides between the two. The file is written only while nothing
// waits in memory; all earlier windows are then on disk.
//
//	"hopstat1"  length of the rest<4b>  crc32c of the rest<4b>  JSON of savedState
const (
	stateMagic = "hopstat1"
	// stateMost is the longest file that is read: more than a million exporters need.
	stateMost = 512 << 20
	// statePatience is how long a window's end waits for the disk. After that the file stays behind, and a kill costs more
	// in the books than it did.
	statePatience = time.Second
	// divertPatience is how long it waits for diverted reports of the window to be on disk.
	divertPatience = 200 * time.Millisecond
)

// savedState is the content of the file.
type savedState struct {
	Runs          uint64 // since the file began
	Since         int64  // when that was
	Clean         bool   // the run ended in order; After counts
	Filled        uint64 // End of the first spool, before the window of After
	Before, After snapshot
}

// snapshot is the end of one window.
type snapshot struct {
	End       int64
	Exporters []byte // numbers that they had reached
	Sinks     map[string]sinkTotals
}

// sinkTotals are the accounts of a sink over all runs since its state file began, without reports in flight.
type sinkTotals struct {
	Received uint64           `json:"received"`
	Dropped  map[string]int64 `json:"dropped"` // by stage
}

// State keeps the state file.
type State struct {
	path   string
	log    *slog.Logger
	state  savedState
	base   map[string]sinkTotals // of earlier runs
	filled func() uint64
	write  chan []byte
	done   chan error
	busy   bool

	ledger    *ledger.Ledger
	pipeline  *pipeline.Pipeline
	detectors *Detectors

	remembering sync.Mutex // while the file of the detectors is being written
	since       int        // windows since that began last
}

// StatePath is the file's path by the settings: "collector.state" in the directory of the first spool, or "" without one.
func StatePath(file string, list []stores.Store) string {
	if file != "" {
		return file
	}
	for _, s := range list {
		if s.Spool != nil && !s.Alerts {
			return filepath.Join(s.Spool.Dir, "collector.state")
		}
	}
	return ""
}

// OpenState reads the state of an earlier run and restores the exporters' numbers. It returns nil if no state is kept:
// without a path, or without a store that has a spool.
func OpenState(path string, set *stores.Set, l *ledger.Ledger, p *pipeline.Pipeline, d *Detectors, log *slog.Logger) (*State, error) {
	first := slices.IndexFunc(set.All(), func(q *stores.Queue) bool { return q.Spool != nil && !q.Alerts })
	if path == "" || first < 0 {
		return nil, nil
	}
	k := &State{
		path: path, log: log, ledger: l, pipeline: p, detectors: d, base: map[string]sinkTotals{}, filled: set.All()[first].Filled,
		write: make(chan []byte), done: make(chan error, 1),
	}
	now := time.Now().UnixNano()
	// What waits in spools when a file begins belongs to its accounts.
	begin := func() {
		k.state = savedState{Since: now}
		for _, s := range set.All() {
			if st := s.Stats(); st.Spool != nil && !s.Alerts {
				k.base[s.Name()] = sinkTotals{Received: st.Spool.Reports}
			}
		}
	}
	stores.Tidy(path, log)
	old, err := readState(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		begin()
	case errors.Is(err, errState):
		aside := path + ".bad"
		log.Error("the state file is damaged, and is put aside; what an earlier run lost is not known", "file", path, "aside", aside, "error", err.Error())
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		begin()
	case err != nil:
		return nil, fmt.Errorf("state file: %w", err)
	default:
		at := old.Before
		if old.Clean || k.filled() > old.Filled {
			at = old.After
		}
		if err := p.Exporters.Restore(at.Exporters); err != nil {
			log.Error("the state file holds no numbers of exporters", "file", path, "error", err.Error())
		}
		k.state = savedState{Runs: old.Runs, Since: old.Since, After: at}
		k.base = at.Sinks
		if !old.Clean {
			log.Warn("the run before did not end in order; its open window is counted as dropped (down) as numbers show",
				"window_end", time.Unix(0, at.End).UTC().Format(time.RFC3339Nano))
		}
	}
	k.state.Runs++
	d.remember(rememberPath(path), log)
	go func() {
		for b := range k.write {
			k.done <- stores.ReplaceFile(k.path, b)
		}
		close(k.done)
	}()
	p.Exporters.Saving = true
	return k, nil
}

// windowEnds writes the file before the window goes to the stores. Its reports and the numbers of exporters are of the same reports, since
// [pipeline.Pipeline.Cut] ends both at one border, and so are the drops.
func (k *State) windowEnds(w *inference.Window) {
	if k.since++; k.since >= rememberEvery {
		k.rememberNow(w.End)
	}
	k.state.Before = k.state.After
	balances := k.ledger.AtBorder()
	if k.pipeline.Diverts() { // its last reports of the window have just been put
		for until := time.Now().Add(divertPatience); !idle(balances) && time.Now().Before(until); balances = k.ledger.AtBorder() {
			time.Sleep(time.Millisecond)
		}
	}
	k.state.After = snapshot{w.End, k.pipeline.Exporters.Saved, k.totals(balances, w.Reports)}
	if !idle(balances) { // an earlier window is not on disk yet
		return
	}
	k.state.Filled = k.filled()
	k.save()
}

// idle reports whether nothing waits in memory for a store.
func idle(balances []sink.Balance) bool {
	for i := range balances {
		if balances[i].InFlight[ledger.SinkQueue.String()] != 0 {
			return false
		}
	}
	return true
}

// totals are the accounts of all runs, with the reports of the window that ends and without those of the next.
func (k *State) totals(balances []sink.Balance, window uint64) map[string]sinkTotals {
	all := map[string]sinkTotals{}
	for i := range balances {
		b := &balances[i]
		t := sinkTotals{Received: k.base[b.Sink].Received + b.Received - b.Carried + window, Dropped: map[string]int64{}}
		for _, s := range []ledger.Stage{ledger.Ring, ledger.ShardQueue, ledger.Window} {
			t.Received -= uint64(b.InFlight[s.String()])
		}
		for _, m := range []map[string]int64{k.base[b.Sink].Dropped, b.Dropped} {
			for stage, n := range m {
				t.Dropped[stage] += n
			}
		}
		all[b.Sink] = t
	}
	return all
}

// save passes the state to the goroutine that writes, and waits for it, for a short time only.
func (k *State) save() {
	b := encodeState(&k.state)
	timer := time.NewTimer(statePatience)
	defer timer.Stop()
	for {
		var write chan []byte
		if !k.busy {
			write = k.write
		}
		select {
		case write <- b:
			k.busy, b = true, nil
		case err := <-k.done:
			k.busy = false
			if err != nil {
				k.log.Error("the state file cannot be written", "file", k.path, "error", err.Error())
			}
			if b == nil {
				return
			}
		case <-timer.C:
			k.log.Warn("the state file is slow to write; after a kill, the reported loss would be too high", "file", k.path)
			return
		}
	}
}

// End notes that the run ended in order. It is called when all stores are closed, and may be called on nil.
func (k *State) End() {
	if k == nil {
		return
	}
	wait(&k.remembering) // the last one is written
	k.rememberNow(k.state.After.End)
	wait(&k.remembering)
	k.state.Clean = true
	k.state.After.Sinks = k.totals(k.ledger.Snapshot(), 0)
	k.state.Before = snapshot{}
	k.save()
	close(k.write)
}

// wait waits until mu is free.
func wait(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

// Discard ends a state of a run that did not begin.
func (k *State) Discard() {
	if k != nil {
		close(k.write)
	}
}

// rememberNow has the file of the detectors written.
func (k *State) rememberNow(end int64) {
	if k.detectors.write(rememberPath(k.path), end, &k.remembering, k.log) {
		k.since = 0
	}
}

// AllRuns returns the accounts of all runs since the state file began; nil without one.
func (k *State) AllRuns() *summary.AllRuns {
	if k == nil {
		return nil
	}
	a := &summary.AllRuns{Runs: k.state.Runs, Since: k.state.Since}
	balances := k.ledger.Snapshot()
	for i, b := range balances {
		t := k.totals(balances[i:i+1], 0)[b.Sink]
		s := sink.Balance{Sink: b.Sink, Received: t.Received, InFlight: b.InFlight, Dropped: t.Dropped}
		stored := int64(t.Received)
		for _, n := range t.Dropped {
			stored -= n
		}
		for stage, n := range b.InFlight {
			if stage == ledger.SinkQueue.String() || stage == ledger.SpoolQueue.String() {
				stored -= n
			} else {
				s.Received += uint64(n)
			}
		}
		s.Stored = uint64(max(0, stored))
		a.Sinks = append(a.Sinks, s)
	}
	return a
}

var errState = errors.New("no state of a collector")

func encodeState(s *savedState) []byte {
	body, err := json.Marshal(s)
	if err != nil {
		panic(err) // it consists of numbers and bytes
	}
	b := append([]byte(stateMagic), make([]byte, 8)...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[12:], crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func decodeState(b []byte) (s savedState, err error) {
	const head = len(stateMagic) + 8
	if len(b) < head || string(b[:8]) != stateMagic || uint64(binary.BigEndian.Uint32(b[8:])) != uint64(len(b)-head) ||
		binary.BigEndian.Uint32(b[12:]) != crc32.Checksum(b[head:], castagnoli) {
		return s, errState
	}
	if err := json.Unmarshal(b[head:], &s); err != nil {
		return s, fmt.Errorf("%w: %w", errState, err)
	}
	return s, nil
}

func readState(path string) (savedState, error) {
	f, err := os.Open(path)
	if err != nil {
		return savedState{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, stateMost))
	if err != nil {
		return savedState{}, err
	}
	return decodeState(b)
}
