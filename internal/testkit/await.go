package testkit

import (
	"testing"
	"time"
)

// limit is a bound for tests that hang, and none for machines that are slow.
const limit = 5 * time.Minute

// Until polls where time is not the test's own; where it is, tests use testing/synctest. It returns when done reports true, and fails the
// test when that takes for ever. What completes "it never came about that".
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}
