package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Crew runs the workers of one receiving source. It starts and stops them and wakes waiting ones. It also asks them
// whether all frames before a time were handed over ([Prompter]).
type Crew struct {
	source  string // for errors
	cpus    []uint16
	stop    int   // eventfd, readable once the workers are to stop
	wake    []int // eventfd of each worker, readable when there is a question
	started atomic.Bool
	stopped atomic.Bool
	last    atomic.Pointer[question]

	mu     sync.Mutex // guards the eventfds, and what the source closes with them
	closed bool
}

// question asks whether everything was handed over that arrived before a time.
type question struct{ before int64 }

// NewCrew makes a crew for a source of a name, whose workers have these CPUs in turn; without CPUs the system places them. Nothing
// runs before Run. A crew that will not run needs Close.
func NewCrew(source string, workers int, cpus []uint16) (*Crew, error) {
	c := &Crew{source: source, cpus: cpus}
	err := c.checkCPUs()
	if err != nil {
		return nil, err
	}
	if c.stop, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("%s: eventfd: %w", source, err)
	}
	for range workers {
		fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: eventfd: %w", source, err), c.Close(nil))
		}
		c.wake = append(c.wake, fd)
	}
	return c, nil
}

// Run calls work in a goroutine for each worker, and closes the crew when all of them have returned. They are to stop when ctx ends, and when
// one of them fails: one deaf worker among others would be a silent loss. A crew runs once.
func (c *Crew) Run(ctx context.Context, work func(worker int) error, release func() error) error {
	if c.started.Swap(true) {
		return errors.New(c.source + ": a source runs only once")
	}
	woken := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() { c.end(); close(woken) })
	var wg sync.WaitGroup
	errs := make([]error, len(c.wake))
	for i := range c.wake {
		wg.Go(func() {
			if errs[i] = c.On(i, func() error { return work(i) }); errs[i] != nil {
				c.end()
			}
		})
	}
	wg.Wait()
	if !cancel() {
		<-woken // it writes to the eventfd that Close gives back
	}
	return errors.Join(append(errs, c.Close(release))...)
}

// ownCPUs are those that the system lets this program use, asked before a thread is bound to one of them.
var ownCPUs = sync.OnceValues(func() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(0, &set)
	return set, err
})

// checkCPUs reports CPUs that the program may not use.
func (c *Crew) checkCPUs() error {
	if len(c.cpus) == 0 {
		return nil
	}
	own, err := ownCPUs()
	if err != nil {
		return fmt.Errorf("%s.cpus: ask for the CPUs of this program: %w", c.source, err)
	}
	for _, cpu := range c.cpus {
		if !own.IsSet(int(cpu)) {
			return fmt.Errorf("%s.cpus: CPU %d is none of the %d that this program may use (Cpus_allowed_list in /proc/self/status)", c.source, cpu, own.Count())
		}
	}
	return nil
}

// On calls f on the CPU of a worker, if it has one, and on any CPU otherwise. Memory that the kernel makes for f is then of that
// CPU's NUMA node.
func (c *Crew) On(worker int, f func() error) error {
	if len(c.cpus) == 0 {
		return f()
	}
	own, err := ownCPUs()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var one unix.CPUSet
	cpu := c.cpus[worker%len(c.cpus)]
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("%s.cpus: bind worker %d to CPU %d: %w (SystemCallFilter=sched_setaffinity in the unit)", c.source, worker, cpu, err)
	}
	err = f()
	return errors.Join(err, unix.SchedSetaffinity(0, &own))
}

func (c *Crew) end() {
	c.stopped.Store(true)
	signal(c.stop)
}

// Stopped reports whether the workers are to stop.
func (c *Crew) Stopped() bool { return c.stopped.Load() }

// Prompt implements [Prompter].
func (c *Crew) Prompt(before int64) {
	c.last.Store(&question{before})
	c.Wake()
}

// Wake ends the waiting of all workers.
func (c *Crew) Wake() {
	c.Guard(func(open bool) {
		for _, fd := range c.wake {
			if open {
				signal(fd)
			}
		}
	})
}

// Guard calls f, and nothing is closed meanwhile. open reports that nothing was closed before.
func (c *Crew) Guard(f func(open bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(!c.closed)
}

// Close releases the resources of a crew, and calls release, if not nil, for those of its source. The second call does
// nothing.
func (c *Crew) Close(release func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	errs := []error{unix.Close(c.stop)}
	for _, fd := range c.wake {
		errs = append(errs, unix.Close(fd))
	}
	if release != nil {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// signal makes an eventfd readable.
func signal(fd int) {
	one := [8]byte{0: 1, 7: 1} // not zero in either byte order
	// A full counter is readable as well, so there is no error that matters.
	_, _ = unix.Write(fd, one[:])
}

// Place is one of the places that a worker reads, such as a socket.
type Place struct {
	// Asked is set when everything was taken from it that arrived before the time of the question.
	Asked bool
}

// Worker is the part of a crew that belongs to one worker and its goroutine. The zero Worker owes nothing.
type Worker struct {
	crew   *Crew
	id     int
	places []*Place
	asked  *question // the last one that was heard
	owes   bool      // an answer to it
	fds    []unix.PollFd
}

// Member returns the Worker of a worker that reads the places.
func (c *Crew) Member(worker int, places []*Place) Worker {
	return Worker{crew: c, id: worker, places: places}
}

// Hear takes over a new question. What the places hold from now on is looked at for it.
func (m *Worker) Hear() {
	q := m.crew.last.Load()
	if q == m.asked {
		return
	}
	m.asked, m.owes = q, true
	for _, p := range m.places {
		p.Asked = false
	}
}

// Owes reports whether a question is still unanswered, and its time, ns since 1970.
func (m *Worker) Owes() (before int64, owes bool) {
	if !m.owes {
		return 0, false
	}
	return m.asked.before, true
}

// Answer hands over an answer, in a batch without frames, once all places were asked.
func (m *Worker) Answer(b *Batch, handle func(worker int, b *Batch)) {
	if !m.owes {
		return
	}
	for _, p := range m.places {
		if !p.Asked {
			return
		}
	}
	m.owes = false
	b.Frames, b.Until = b.Frames[:0], m.asked.before
	handle(m.id, b)
	b.Until = 0
}

// Wait waits until one of fds is ready, there is a question, or the crew is to stop; limit bounds it, and may be nil. It returns the
// number of those that are ready, of fds and of the crew's own, and sets Revents of fds. A signal of the system ends it, too.
func (m *Worker) Wait(fds []unix.PollFd, limit *unix.Timespec) (ready int, err error) {
	m.fds = append(append(m.fds[:0], fds...),
		unix.PollFd{Fd: int32(m.crew.stop), Events: unix.POLLIN}, unix.PollFd{Fd: int32(m.crew.wake[m.id]), Events: unix.POLLIN})
	ready, err = unix.Ppoll(m.fds, limit, nil)
	if err != nil && err != unix.EINTR {
		return 0, fmt.Errorf("%s: ppoll: %w", m.crew.source, err)
	}
	copy(fds, m.fds)
	if m.fds[len(m.fds)-1].Revents&unix.POLLIN != 0 {
		var count [8]byte
		_, _ = unix.Read(m.crew.wake[m.id], count[:]) // what it counted says nothing
	}
	return max(ready, 0), nil
}
