// Package testkit holds helpers that tests of several rooms share. There are worked examples of the formats and states
// that earlier programs wrote. There are free addresses for servers, polls for effects of another process, the kernel
// or a connection, and the number of rounds of tests.
package testkit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// StateFile returns the bytes that an earlier program wrote, in testdata/NAME.state. If there is no such file yet, it
// is made by write, and the test fails once. A file is never written again: a later version of a state is another file.
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

// SameState fails the test unless a state equals that of [StateFile], bit for bit. The state of the file must also be
// the same after it is read and written again.
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
