package testkit

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedSetting is the environment variable that sets the seed of a test, to repeat what a night has found.
const seedSetting = "HOPSCOPE_SEED"

// Seed returns the seed of a test's random numbers. The gate's seed follows from the name of the test, so every run of
// the gate sees the same numbers. Otherwise a failure by chance, once in ten thousand runs, would stop changes that
// have no part in it. The night draws a fresh one. HOPSCOPE_SEED sets it.
func Seed(t testing.TB) uint64 {
	if s := os.Getenv(seedSetting); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("%s=%q: not a number of 64 bits", seedSetting, s))
		}
		return seed
	}
	if Night() {
		return rand.Uint64()
	}
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return h.Sum64()
}
