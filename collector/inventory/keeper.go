package inventory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/inference/names"
)

// Keeper holds the names of a running program, and reads their file again when it changes. A file that cannot be read leaves the
// names as they were. The zero value has no names.
type Keeper struct {
	current  atomic.Pointer[names.Names]
	problem  atomic.Pointer[string]
	failures atomic.Uint64

	mu      sync.Mutex // guards what follows
	path    string
	seen    os.FileInfo // of the file when it was read last; nil if it could not be found
	without *names.Names
	reasons map[uint8]string
	sites   names.Sites
	base    *names.Names // without what was learned
	drawn   []names.Node // of the network on the map
	learned []names.Node // one for a node, in the order of ids
}

// Open reads the file at path, unless it is empty. Without a file the names are without. The argument reasons has the
// names of drop reasons that the file does not contain. Sites are those whose nodes have numbers of their own.
func (k *Keeper) Open(path string, without *names.Names, reasons map[uint8]string, sites names.Sites) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.path, k.without, k.reasons, k.sites = path, without, reasons, sites
	return k.read()
}

// Names returns the names of this moment.
func (k *Keeper) Names() *names.Names { return k.current.Load() }

// Failures returns how often the file could not be read.
func (k *Keeper) Failures() uint64 { return k.failures.Load() }

// Problem returns why the names are older than their file, or nothing.
func (k *Keeper) Problem() string {
	if p := k.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// Reload reads the file at path, changed or not.
func (k *Keeper) Reload(path string, log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.path = path
	k.reread(log)
}

// Refresh reads the file if it is another one than was read, or has changed.
func (k *Keeper) Refresh(log *slog.Logger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return
	}
	info, err := os.Stat(k.path)
	switch {
	case err != nil && k.seen == nil && k.problem.Load() != nil: // still missing, which was logged
		return
	case err == nil && k.seen != nil && os.SameFile(info, k.seen) && info.ModTime().Equal(k.seen.ModTime()) && info.Size() == k.seen.Size():
		return
	}
	k.reread(log)
}

// Watch looks every five seconds whether the file has changed, until ctx ends.
func (k *Keeper) Watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.Refresh(log)
		}
	}
}

func (k *Keeper) reread(log *slog.Logger) {
	before := k.Names()
	if err := k.read(); err != nil {
		text := "names are those of before: " + err.Error()
		k.problem.Store(&text)
		k.failures.Add(1)
		log.Error("inventory not reloaded; the former names stay", "error", err.Error())
		return
	}
	k.problem.Store(nil)
	if now := k.Names(); !now.Equal(before) {
		log.Info("inventory reloaded", "file", k.path, "names", now.Len())
	}
}

// read takes the names from the file. The file is looked at before it is read: what changes meanwhile is seen the next time.
func (k *Keeper) read() error {
	n := k.without
	if k.path != "" {
		info, err := os.Stat(k.path)
		if err != nil {
			info = nil // reading reports why
		}
		k.seen = info
		switch {
		case info == nil:
		case !info.Mode().IsRegular():
			return &Error{k.path, 0, errors.New("is no regular file")} // reading might wait for ever
		case info.Size() == 0 && k.Names().Len() > 0:
			return &Error{k.path, 0, errors.New("is empty; it may be being written")}
		}
		if n, err = ReadFile(k.path, k.sites); err != nil {
			return err
		}
	}
	k.base = n.WithReasons(k.reasons).WithSites(k.sites)
	k.publish()
	return nil
}

// Draw adds the names of the network on the map, so that one node has one name in all places. Names of the file override
// them, and they override those that devices report.
func (k *Keeper) Draw(nodes []names.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drawn = nodes
	k.publish()
}

// Learn adds the names that devices report of themselves. Names of the file override them, and later reports override
// earlier ones.
func (k *Keeper) Learn(nodes []names.Node) {
	if len(nodes) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	latest := slices.Clone(nodes)
	slices.Reverse(latest)
	k.learned = (*names.Names)(nil).WithNodes(append(latest, k.learned...)).Document().Nodes
	k.publish()
}

func (k *Keeper) publish() {
	n := k.base.WithNodes(k.drawn).WithNodes(k.learned)
	if !n.Equal(k.current.Load()) {
		k.current.Store(n)
	}
}

// RowSchedule selects the windows in which names are written to series: the first one, those after a change, and the
// first of each day (UTC).
type RowSchedule struct {
	written *names.Names
	day     int64
}

// Rows returns the names for a window that ends at a time in ns since 1970, or nothing.
func (t *RowSchedule) Rows(n *names.Names, end int64) []names.Row {
	day := end / int64(24*time.Hour)
	if n == t.written && day == t.day {
		return nil
	}
	t.written, t.day = n, day
	return n.Rows()
}
