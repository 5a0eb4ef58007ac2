package testkit

import (
	"testing"
	"time"
)

// Patience is the bound of a wait, for tests that hang. Machines that are slow do not reach it.
const Patience = 5 * time.Minute

// Until polls where time is not the test's own; where it is, tests use testing/synctest. It returns when done reports
// true, and fails the test when that takes for ever. The argument what completes "it never came about that".
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Await(done) {
		t.Fatalf("it never came about that %s", what)
	}
}

// Await polls as [Until] does, for tests with a message of their own. It reports whether done came to report true.
func Await(done func() bool) bool {
	deadline, wait := time.Now().Add(Patience), 2*time.Millisecond
	for !done() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(wait)
		wait = min(wait*5/4, 50*time.Millisecond) // what takes long is not asked all the time
	}
	return true
}
