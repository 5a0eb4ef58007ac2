package ingest

import "net/netip"

// What only some sources can do is an interface of its own beside [Source]. The runner of sources asks for it.

// Listener is a source that waits for frames at addresses.
type Listener interface {
	// Addrs are the addresses, with the ports that the system picked for port 0.
	Addrs() []netip.AddrPort
}

// Notifier is a source that works, although not as well as it could.
type Notifier interface {
	// Notices returns sentences that the operator should read before the source runs.
	Notices() []string
}

// Describer is a source that reads from several places and can distinguish them.
type Describer interface {
	// Inputs may be called at any time.
	Inputs() []Input
}

// Input is one place that a source reads from.
type Input struct {
	Name    string // an address, or the name of a file
	Frames  uint64 // handed over
	Problem string // why nothing, or not everything, comes from it; empty as long as it works
}

// Waiter is a source that can be made to wait without losing anything, as a file can and a socket cannot. Where the
// queues behind it are full it is made to wait, and its frames are not dropped.
type Waiter interface{ Waits() bool }

// Prompter is a source whose frames have the time at which this machine received them, by its wall clock. It reports
// when all frames before a time were handed over.
type Prompter interface {
	// Prompt makes every worker hand over a batch with Until set to before, once it has handed over all frames with
	// an earlier time. That batch may have no frames. Prompt does not wait for it. A worker with several unanswered
	// calls answers only the last.
	Prompt(before int64)
}

// Metric is one number of [Stats] as it is published about a kind of source.
type Metric struct {
	Name  string // "datagrams_total": what follows the name of the source
	Help  string
	Value func(*Stats) uint64
}
