package testkit

import "testing"

// Long marks a test that takes more than some seconds of a processor, or waits long for servers. The gate runs it, and
// so does go test without -short; make test, which a newcomer waits for, leaves it out.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short, as in make check")
	}
}
