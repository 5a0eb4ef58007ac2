package probe

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4/agent/agentpb"
)

// A kept plan that was cut or changed anywhere is no plan, and a file without a checksum is read as it was.
func TestSeal(t *testing.T) {
	plan := []byte("a plan of some bytes")
	file := Seal(plan)
	if got, err := Unseal(file); err != nil || !bytes.Equal(got, plan) {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := Unseal(plan); err != nil || !bytes.Equal(got, plan) {
		t.Errorf("a file without a checksum: %q, %v", got, err)
	}
	for n := len(keptMark); n < len(file); n++ {
		if got, err := Unseal(file[:n]); err == nil {
			t.Errorf("cut to %d bytes it is %q", n, got)
		}
		changed := bytes.Clone(file)
		changed[n] ^= 1
		if got, err := Unseal(changed); err == nil {
			t.Errorf("changed at %d it is %q", n, got)
		}
	}
}

// What is left of the mark alone is no message, so that it is not taken for a plan without a checksum.
func TestMarkIsNoPlan(t *testing.T) {
	for n := 1; n <= len(keptMark); n++ {
		if b, err := Unseal([]byte(keptMark[:n])); err == nil && proto.Unmarshal(b, &agentpb.Plan{}) == nil {
			t.Errorf("%q is a plan", b)
		}
	}
}
