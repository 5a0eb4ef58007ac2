package testkit

import (
	"fmt"
	"os"
	"testing"
)

// setting is the environment variable that selects how much tests repeat:
//
//	gate    the number that finds what usually breaks, within the time of one run of all tests (the default)
//	night   the number that a test deserves when time does not matter
//
// Under the race detector, which slows arithmetic down tenfold, the gate runs a quarter of its rounds. Races depend on
// how goroutines interleave, and little on the number of inputs. With -short, as in make test, a quarter is enough for a
// first look.
const setting = "HOPSCOPE_ROUNDS"

var night = func() bool {
	switch s := os.Getenv(setting); s {
	case "", "gate":
		return false
	case "night":
		return true
	default:
		panic(fmt.Sprintf("%s=%q: neither gate nor night", setting, s))
	}
}()

// Night reports whether tests run with the numbers of the night.
func Night() bool { return night }

// few reports whether tests run with a quarter of the gate's numbers.
func few() bool { return (Race || testing.Short()) && !Night() }

// Stride is the step of a test through all lengths or places: 1, and under the race detector or with -short the gate's
// is 4. The test also covers both sides of every border.
func Stride() int {
	if few() {
		return 4
	}
	return 1
}

// Rounds returns the number of repetitions: gate or night, by the setting. Under the race detector and with -short the
// gate's number is a quarter of gate, and at least 1.
func Rounds(gate, night int) int {
	switch {
	case Night():
		return night
	case few():
		return max(1, gate/4)
	}
	return gate
}
