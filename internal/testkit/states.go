// Package testkit is what tests of several rooms share: worked examples of the formats and states that earlier programs wrote, free
// addresses for servers, polls for what another process, the kernel or a connection brings about, and how much tests repeat.
package testkit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// StateFile gives the bytes that an earlier program wrote, in testdata/NAME.state. If there is no such file yet, it is made of what
// write gives, and the test fails once. A file is never written again: a later version of a state is another file.
func StateFile(t *testing.T, name string, write func() []byte) []byte {
	t.Helper()
	file := filepath.Join("testdata", name+".state")
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		b = write()
		if err = os.MkdirAll("testdata", 0o755); err == nil {
			err = os.WriteFile(file, b, 0o644)
		}
		t.Errorf("%s was not there, and holds what is written now", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// SameState fails the test unless a state is that of [StateFile], bit for bit, and that of the file is read and written again as it is.
func SameState(t *testing.T, name string, state []byte, recode func(b []byte) ([]byte, error)) {
	t.Helper()
	want := StateFile(t, name, func() []byte { return state })
	if !bytes.Equal(state, want) {
		t.Errorf("%s: the state has %d bytes, which are others than the %d that were written of the same before", name, len(state), len(want))
	}
	if got, err := recode(want); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: the state that was written before is read as another one: %v", name, err)
	}
}
