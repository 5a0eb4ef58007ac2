//go:build !linux

package afxdp

import (
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
)

// New fails: other systems have no such rings.
func New(cfg Config) (ingest.Source, error) { return afpacket.New(cfg.Config) }
