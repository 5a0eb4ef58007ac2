//go:build !linux

package rate

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"
)

// UDP measures the rate of one core over UDP, on Linux alone.
type UDP struct{}

// Flags declares nothing.
func (o *UDP) Flags(*pflag.FlagSet) {}

// Check finds nothing.
func (o *UDP) Check() error { return nil }

// Run returns an error.
func (o *UDP) Run(context.Context) (*UDPResult, error) {
	return nil, errors.New("udp: needs Linux (network namespaces, receive packet steering, recvmmsg)")
}

// UDPResult has nothing.
type UDPResult struct{}

// Show writes nothing.
func (r *UDPResult) Show(io.Writer) error { return nil }

// Peers gives collectors the same datagrams, on Linux alone.
type Peers struct{}

// Flags declares nothing.
func (o *Peers) Flags(*pflag.FlagSet) {}

// Check finds nothing.
func (o *Peers) Check([]string) error { return nil }

// Run returns an error.
func (o *Peers) Run(context.Context) (*PeersResult, error) {
	return nil, errors.New("peers: needs Linux (network namespaces, receive packet steering, XDP)")
}

// PeersResult has nothing.
type PeersResult struct{}

// Show writes nothing.
func (r *PeersResult) Show(io.Writer) error { return nil }
