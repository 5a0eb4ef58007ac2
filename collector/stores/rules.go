package stores

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/sink/notify"
)

// RulesFile is the file of what operators acknowledged, muted and accepted. It is read again, in the background, when it changes. Its
// methods may be called on nil, which has no rules, and by several goroutines.
type RulesFile struct {
	path string
	log  *slog.Logger

	reading sync.Mutex  // while it is read
	seen    os.FileInfo // the file as it was read last; nil if it was not there
	rules   atomic.Pointer[notify.Rules]

	problem  atomic.Pointer[string]
	failures atomic.Uint64
}

// OpenRules reads the file of rules, if there is one. A wrong file is logged, and holds no rules. Without a path there are none.
func OpenRules(path string, log *slog.Logger) *RulesFile {
	f := &RulesFile{path: path, log: log}
	f.rules.Store(&notify.Rules{})
	f.Rules()
	f.reading.Lock() // until it is read
	defer f.reading.Unlock()
	return f
}

// Rules returns the rules that were read last, and has the file read again if it has changed: a window does not wait for it. The
// result is the same pointer until others were read.
func (f *RulesFile) Rules() *notify.Rules {
	if f == nil {
		return &notify.Rules{}
	}
	if f.path != "" && f.reading.TryLock() {
		info, err := os.Stat(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			info = nil
		}
		if before := f.seen; sameFile(info, before) && (err == nil || info == nil) {
			f.reading.Unlock()
		} else {
			f.seen = info
			go f.read()
		}
	}
	return f.rules.Load()
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (f *RulesFile) read() {
	defer f.reading.Unlock()
	r, err := notify.ReadRules(f.path)
	if err != nil {
		text := "what was acknowledged and muted is that of before: " + err.Error()
		if p := f.problem.Swap(&text); p == nil || *p != text {
			f.failures.Add(1)
			f.log.Error("acknowledgements and mutes not read; the former ones stay in force", "error", err.Error())
		}
		return
	}
	f.problem.Store(nil)
	f.rules.Store(r)
	if n := len(r.Acknowledged) + len(r.Mutes) + len(r.Accepted); n > 0 {
		f.log.Info("acknowledgements and mutes read", "file", f.path, "acknowledged", len(r.Acknowledged), "mutes", len(r.Mutes), "accepted", len(r.Accepted))
	}
}

// Acceptances returns the acceptances in the rules, for the detectors.
func Acceptances(r *notify.Rules) (out []events.Acceptance) {
	for i := range r.Accepted {
		a := &r.Accepted[i]
		if f, err := notify.ParseKey(a.Alert); err == nil {
			out = append(out, events.Acceptance{Kind: f.Kind, Element: f.Element, By: a.By, At: a.At.UnixNano()})
		}
	}
	return out
}

// Problem returns why the rules are older than their file, or nothing.
func (f *RulesFile) Problem() string {
	if f == nil {
		return ""
	}
	if p := f.problem.Load(); p != nil {
		return *p
	}
	return ""
}
