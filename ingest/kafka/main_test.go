package kafka_test

import (
	"testing"

	"github.com/hopscope/hopscope/internal/servertest"
)

// asChild runs this process as a controller of its own, if a test started it as one, and reports whether it did.
var asChild = func() bool { return false }

func TestMain(m *testing.M) {
	if !asChild() {
		servertest.Main(m)
	}
}
