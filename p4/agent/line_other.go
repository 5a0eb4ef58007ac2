//go:build !linux

package agent

import (
	"errors"
	"time"
)

// line is the agent's way to the network, which only Linux has.
type line struct {
	tx txSocket
	rx rxSocket
}

type txSocket struct{}

type rxSocket struct{}

func openLine(*Config, int) (*line, error) {
	return nil, errors.New("probes are sent and received over packet sockets (AF_PACKET), which only Linux has")
}

func (*line) notice() string                           { return "" }
func (*line) up(string) bool                           { return true }
func (*line) close() error                             { return nil }
func (txSocket) slots() int                            { return 0 }
func (txSocket) slot(int) []byte                       { return nil }
func (txSocket) set(int, []byte)                       {}
func (txSocket) send(int) (sent, bytes int, err error) { return 0, 0, nil }
func (txSocket) missed() ([]int, error)                { return nil, nil }
func advice(error) string                              { return "" }
func (rxSocket) slots() int                            { return 0 }
func (rxSocket) receive(d time.Duration) (int, error)  { time.Sleep(d); return 0, nil }
func (rxSocket) frame(int) (frame []byte, at int64)    { return nil, 0 }
func (rxSocket) dropped() uint64                       { return 0 }
func sharpenTimers()                                   {}
func sleep(d time.Duration)                            { time.Sleep(d) }
