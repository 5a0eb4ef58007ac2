package emu

import "testing"

// What tests of scenarios use of the tests of the network.
var (
	CheckDigest    = checkDigest
	DecodeStrictly = decodeStrictly
	MustNew        = mustNew
)

// At is the index of a switch.
func (n *Network) At(t *testing.T, name string) int { return n.node(t, name) }
