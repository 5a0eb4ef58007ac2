//go:build !linux

package afpacket

import (
	"errors"

	"github.com/hopscope/hopscope/ingest"
)

// New fails: other systems have no such rings.
func New(cfg Config) (ingest.Source, error) {
	return nil, errors.New(cfg.Section + ": interfaces are read on Linux alone; tcpdump -w into a FIFO of pcap.files does it elsewhere")
}
