package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// Installers are the switches of a network. Each has a goroutine, so that a slow one holds up no other.
type Installers struct {
	owner   Owner
	timeout time.Duration
	post    func(control.Event)
	mu      sync.Mutex
	all     map[string]*installing // by the lock
	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// installing is one switch.
type installing struct {
	name string
	to   p4rt.Installer
	jobs chan job
	end  chan struct{}
	have map[string]p4.Entry // by the controller's key: all entries of the switch; nil where it has to be read. Only for its goroutine.
}

type job struct {
	request control.Request
	op      p4rt.Op // 0 reads
	entries []control.Entry
	until   time.Time
	clear   func() // in place of all of it
	load    bool   // the program, in place of entries
}

// mostJobs is the number of requests to a switch that may wait. The controller has one pending request, and gives it up
// after a time.
const mostJobs = 16

// NewInstallers begins to serve switches. Timeout is that of the controller.
func NewInstallers(owner Owner, timeout time.Duration, post func(control.Event), switches map[string]p4rt.Installer) *Installers {
	s := &Installers{owner: owner, timeout: timeout, post: post, all: map[string]*installing{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for name, to := range switches {
		s.Serve(name, to)
	}
	return s
}

// Serve begins to serve a switch, in place of one of the same name. It is not called after Close.
func (s *Installers) Serve(name string, to p4rt.Installer) {
	s.Leave(name)
	x := &installing{name: name, to: to, jobs: make(chan job, mostJobs), end: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = x
	s.done.Go(func() { s.serve(x) })
}

// Leave ends serving a switch, after pending jobs. Its entries stay.
func (s *Installers) Leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.all[name]; x != nil {
		close(x.end)
		delete(s.all, name)
	}
}

// Clear removes every entry of this controller from a switch that no plan needs any more, after pending jobs there, and
// returns their number. It reads the switch first. It calls may before the first write; after an error of may, nothing
// is written.
func (s *Installers) Clear(ctx context.Context, name string, may func(entries int) error) (int, error) {
	s.mu.Lock()
	x := s.all[name]
	s.mu.Unlock()
	if x == nil {
		return 0, fmt.Errorf("switch %s is not served", name)
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	select {
	case x.jobs <- job{clear: func() {
		n, err := s.clear(ctx, x, may)
		done <- result{n, err}
	}}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-ctx.Done(): // Close may have come first
		return 0, ctx.Err()
	}
}

func (s *Installers) clear(ctx context.Context, x *installing, may func(entries int) error) (int, error) {
	if err := x.read(ctx); err != nil {
		return 0, err
	}
	var updates []p4rt.Update
	for _, e := range x.have {
		if _, ours := s.owner.epoch(e.Owner); ours {
			updates = append(updates, p4rt.Update{Op: p4rt.Delete, Entry: e})
		}
	}
	if len(updates) == 0 {
		return 0, nil
	}
	if err := may(len(updates)); err != nil {
		return 0, err
	}
	x.have = nil
	errs, err := x.to.Write(ctx, updates)
	for k, e := range errs {
		if e != nil && !errors.Is(e, p4rt.ErrSkipped) {
			err = errors.Join(err, fmt.Errorf("delete %v: %w", &updates[k].Entry, e))
		}
	}
	return len(updates), err
}

// Close ends what is under way.
func (s *Installers) Close() {
	s.stop()
	s.done.Wait()
}

// Install implements [Switches].
func (s *Installers) Install(name string, r control.Request, entries []control.Entry) {
	s.add(name, job{request: r, op: p4rt.Insert, entries: entries})
}

// Remove implements [Switches].
func (s *Installers) Remove(name string, r control.Request, entries []control.Entry) {
	s.add(name, job{request: r, op: p4rt.Delete, entries: entries})
}

// ReadEntries implements [Switches].
func (s *Installers) ReadEntries(name string, r control.Request) { s.add(name, job{request: r}) }

// Load implements [Switches].
func (s *Installers) Load(name string, r control.Request) { s.add(name, job{request: r, load: true}) }

func (s *Installers) add(name string, j job) {
	s.mu.Lock()
	x := s.all[name]
	s.mu.Unlock()
	if x == nil {
		s.post(control.Refused{Request: j.request, Device: switchNamed(name), Why: "nothing is known about how to reach it"})
		return
	}
	j.until = time.Now().Add(s.timeout)
	select {
	case x.jobs <- j:
	default: // it hangs; the controller gives up the request
	}
}

func switchNamed(name string) control.Device {
	return control.Device{Kind: control.Switch, Name: name}
}

func (s *Installers) serve(x *installing) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-x.end:
			return
		case j := <-x.jobs:
			if j.clear != nil {
				j.clear()
				continue
			}
			ctx, cancel := context.WithDeadline(s.ctx, j.until)
			if ctx.Err() == nil { // else the controller no longer waits for it, and it must not come late
				s.do(ctx, x, j)
			}
			cancel()
		}
	}
}

// do carries a job out and posts what came of it. Where that is not known, nothing is posted.
func (s *Installers) do(ctx context.Context, x *installing, j job) {
	d := switchNamed(x.name)
	if j.load {
		s.load(ctx, x, d, &j)
		return
	}
	if j.op == 0 || x.have == nil {
		if err := x.read(ctx); err != nil {
			s.fail(d, j.request, err)
			return
		}
	}
	if j.op == 0 {
		s.post(control.ReadBack{Request: j.request, Device: d, Entries: s.ours(x)})
		return
	}
	updates, keys, wrong := s.updates(x, &j)
	if len(updates) > 0 {
		x.have = nil // unless all of it works
		errs, err := x.to.Write(ctx, updates)
		if err != nil || slices.ContainsFunc(errs, func(e error) bool { return errors.Is(e, p4rt.ErrUnknown) }) {
			s.fail(d, j.request, errors.Join(err, joined(updates, errs)))
			return
		}
		for k, e := range errs {
			if e != nil {
				wrong[keys[k]] = e
			}
		}
		if err := x.read(ctx); err != nil { // the reported outcome is checked against the contents
			s.fail(d, j.request, err)
			return
		}
		for k := range updates {
			if wrong[keys[k]] == nil && !x.holds(&updates[k], keys[k]) {
				wrong[keys[k]] = errForgets
			}
		}
	}
	if len(wrong) == 0 {
		s.post(control.Acked{Request: j.request, Device: d})
		return
	}
	did, why := outcome(&j, updates, keys, wrong)
	s.post(control.Refused{Request: j.request, Device: d, Why: cut(why.Error()), Did: did})
}

// errForgets is a switch that takes an update and does not hold it when it is read.
var errForgets = errors.New("the switch took it, and does not hold it when it is read")

// joined are the errors of updates that were not skipped.
func joined(updates []p4rt.Update, errs []error) (all error) {
	for k, e := range errs {
		if e != nil && !errors.Is(e, p4rt.ErrSkipped) {
			all = errors.Join(all, fmt.Errorf("%v %v: %w", updates[k].Op, &updates[k].Entry, e))
		}
	}
	return all
}

// holds reports whether a switch that was read holds what an update makes.
func (x *installing) holds(u *p4rt.Update, key string) bool {
	have, there := x.have[key]
	switch {
	case u.Entry.Default(): // always there, with an action and without an owner
		return u.Op == p4rt.Delete || there && have.SameAction(&u.Entry)
	case u.Op == p4rt.Delete:
		return !there
	}
	return there && have.SameAction(&u.Entry)
}

// outcome returns the outcomes of the entries of a job, and why not all succeeded.
func outcome(j *job, updates []p4rt.Update, keys []string, wrong map[string]error) (did []control.Change, why error) {
	op := make(map[string]control.Op, len(keys))
	for k := range updates {
		op[keys[k]] = control.Op(updates[k].Op.String())
	}
	done := 0
	for _, e := range j.entries {
		x := control.Change{Op: op[e.Key], Entry: e}
		if x.Op == "" {
			x.Op = control.Hold // it was there
			if j.op == p4rt.Delete {
				x.Op = control.Delete // it was gone
			}
		}
		if err := wrong[e.Key]; err != nil {
			x.Why, x.Skipped = cut(err.Error()), errors.Is(err, p4rt.ErrSkipped)
			if !x.Skipped {
				why = errors.Join(why, fmt.Errorf("%s %s, %s: %w", x.Op, e.Key, e.Value, err))
			}
		} else {
			done++
		}
		did = append(did, x)
	}
	return did, fmt.Errorf("%d of %d entries were carried out: %w", done, len(did), why)
}

// load loads the program into a switch, which reports afterwards that it runs it.
func (s *Installers) load(ctx context.Context, x *installing, d control.Device, j *job) {
	x.have = nil
	to, ok := x.to.(interface{ Commit(context.Context) error })
	if !ok {
		s.post(control.Refused{Request: j.request, Device: d, Why: "it runs no program that could be loaded"})
		return
	}
	if err := to.Commit(ctx); err != nil {
		s.fail(d, j.request, err)
		return
	}
	s.post(control.Acked{Request: j.request, Device: d})
}

// fail posts that a request was refused, unless it may have been carried out.
func (s *Installers) fail(d control.Device, r control.Request, err error) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, p4rt.ErrUnknown) || errors.Is(err, p4rt.ErrUnreachable) {
		return // the controller runs into its time limit, and reads back
	}
	s.post(control.Refused{Request: r, Device: d, Why: cut(err.Error())})
}

func (x *installing) read(ctx context.Context) error {
	list, err := x.to.Read(ctx)
	if err != nil {
		x.have = nil
		return err
	}
	x.have = make(map[string]p4.Entry, len(list))
	for k := range list {
		x.have[keyOf(&list[k])] = list[k]
	}
	return nil
}

// ours are the entries of this controller.
func (s *Installers) ours(x *installing) (list []control.Entry) {
	for key, e := range x.have {
		if epoch, ok := s.owner.epoch(e.Owner); ok {
			list = append(list, control.Entry{Epoch: epoch, Key: key, Value: valueOf(&e)})
		}
	}
	return list // the controller sorts
}

// updates returns the updates of a job at a switch with its present entries, with their keys. The result wrong holds
// the errors of other entries, by key.
func (s *Installers) updates(x *installing, j *job) (list []p4rt.Update, keys []string, wrong map[string]error) {
	wrong = map[string]error{}
	list, keys = make([]p4rt.Update, 0, len(j.entries)), make([]string, 0, len(j.entries))
	owner, of := s.owner.name(0), uint32(0) // entries of an epoch follow each other
	for k := range j.entries {
		want := &j.entries[k]
		if want.Epoch != of {
			owner, of = s.owner.name(want.Epoch), want.Epoch
		}
		have, there := x.have[want.Key]
		if j.op == p4rt.Delete {
			if there && have.Owner == owner { // else it is gone, or another one by now
				list, keys = append(list, p4rt.Update{Op: p4rt.Delete, Entry: have}), append(keys, want.Key)
			}
			continue
		}
		e, err := tableEntry(want, owner)
		if err != nil {
			wrong[want.Key] = err
			continue
		}
		op := p4rt.Modify
		switch {
		case !there && !e.Default():
			op = p4rt.Insert
		case there && have.Owner == owner && have.SameAction(&e):
			continue
		case there && !e.Default():
			if _, ours := s.owner.epoch(have.Owner); !ours {
				wrong[want.Key] = p4rt.ErrForeign
				continue
			}
		}
		list, keys = append(list, p4rt.Update{Op: op, Entry: e}), append(keys, want.Key)
	}
	return list, keys, wrong
}
